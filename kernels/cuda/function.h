// SPDX-License-Identifier: Apache-2.0
//
// Finds and launches functions of the device: those of kernels/cuda/device, which nvcc compiles and
// which are embedded in the plugin. The type of each argument must be exactly that of the kernel's
// parameter; a pointer is passed as CUdeviceptr.
#pragma once

#include <cuda.h>

#include <string>
#include <type_traits>

#include "driver.h"

namespace orr_cuda {

using Function = CUfunction;

// A device address as the type that pointers have in the arguments of device functions.
template <class T = void>
T* pointer(CUdeviceptr at) {
  return reinterpret_cast<T*>(at);
}

struct Extent {
  unsigned x = 1, y = 1, z = 1;
};

// The `extern "C" __global__` function of this name in any file of kernels/cuda/device. Throws
// orr::Error if there is none. REQUIRES: the device is open. [main thread]
Function find_function(const std::string& name);

// The most shared memory of a block: what sm_80 has, nearly.
constexpr int64_t kMostShared = 160 << 10;

// Allows launches with more than 48 KiB of dynamic shared memory. [main thread]
void allow_shared(Function function, unsigned bytes);

// Enqueues one launch. If the grid has no blocks, it does nothing.
void enqueue_packed(CUstream stream, Function function, Extent grid, Extent block,
                    unsigned shared_bytes, void** arguments);

template <class... Args>
void enqueue(CUstream stream, Function function, Extent grid, Extent block, unsigned shared_bytes,
             Args... args) {
  static_assert((std::is_trivially_copyable_v<Args> && ...));
  void* arguments[] = {static_cast<void*>(&args)..., nullptr};
  enqueue_packed(stream, function, grid, block, shared_bytes, arguments);
}

}  // namespace orr_cuda
