// SPDX-License-Identifier: Apache-2.0
//
// Put before every file of kernels/cuda/device when it is compiled for the host: the words of CUDA
// that those files use, with the meaning that the block of fibers in block.h gives them.
#pragma once

#include <vector_functions.h>
#include <vector_types.h>

#include <cmath>
#include <cstdint>
#include <cstring>

#include "block.h"

#undef __global__
#undef __device__
#undef __shared__
#undef __launch_bounds__
#undef __grid_constant__
#undef __forceinline__
#define __global__
#define __device__
// All static shared memory lies in one section, so that each block can find it full of rubbish.
#define __shared__ static __attribute__((section("emulated_shared")))
#define __launch_bounds__(...)
#define __grid_constant__
#define __forceinline__ inline

#define threadIdx (::emulator::self().index)
#define blockIdx (::emulator::block_index)
#define blockDim (::emulator::block_extent)
#define gridDim (::emulator::grid_extent)

#define ORR_EMULATED 1
#define ORR_TENSOR_CORE "emulator/tensor_core.h"
#define ORR_KERNEL(name, threads, Args, ...)                                                 \
  const ::emulator::NamedKernel emulated_##name(#name, threads, sizeof(Args), [](void** p) { \
    __VA_ARGS__(*static_cast<const Args*>(p[0]));                                            \
  });
#define ORR_KERNEL_BLOCKS(name, threads, blocks, Args, ...) \
  ORR_KERNEL(name, threads, Args, __VA_ARGS__)

namespace orr_cuda {
inline char* dynamic_shared() { return ::emulator::dynamic_shared; }
}  // namespace orr_cuda

inline float __uint_as_float(unsigned bits) { return __builtin_bit_cast(float, bits); }
inline void __syncthreads() { ::emulator::barrier(); }
inline void __syncwarp(unsigned mask = 0xffffffffu) { ::emulator::exchange(mask, nullptr, 0); }
inline void __threadfence() {}
inline void __threadfence_system() {}

namespace emulator {

// What lane `from(lane)` of the mask gave.
template <class T, class From>
T shuffle(unsigned mask, T value, int width, From from) {
  const int lane = self().lane, base = lane / width * width;
  const int source = from(lane - base);
  const bool inside = source >= 0 && source < width;
  return *static_cast<const T*>(
      exchange(mask, &value, sizeof value, inside ? base + source : lane));
}

}  // namespace emulator

template <class T>
T __shfl_sync(unsigned mask, T v, int source, int width = 32) {
  return emulator::shuffle(mask, v, width, [=](int) { return source % width; });
}
template <class T>
T __shfl_down_sync(unsigned mask, T v, unsigned by, int width = 32) {
  return emulator::shuffle(mask, v, width, [=](int lane) { return lane + int(by); });
}
template <class T>
T __shfl_up_sync(unsigned mask, T v, unsigned by, int width = 32) {
  return emulator::shuffle(mask, v, width, [=](int lane) { return lane - int(by); });
}
template <class T>
T __shfl_xor_sync(unsigned mask, T v, int by, int width = 32) {
  return emulator::shuffle(mask, v, width, [=](int lane) { return lane ^ by; });
}

// REQUIRES: all lanes take part.
inline unsigned __ballot_sync(unsigned mask, int predicate) {
  const auto* all =
      static_cast<const char*>(emulator::exchange(mask, &predicate, sizeof predicate));
  unsigned lanes = 0;
  for (int lane = 0; lane < 32; ++lane) {
    int of_lane;
    std::memcpy(&of_lane, all + lane * emulator::kShown, sizeof of_lane);
    lanes |= unsigned(of_lane != 0) << lane;
  }
  return lanes;
}
inline int __ffs(int bits) { return __builtin_ffs(bits); }

// Fibers change only where they wait: whatever stands between is atomic.
template <class T>
T atomicAdd(T* at, T by) {
  T old = *at;
  *at += by;
  return old;
}
template <class T>
T atomicCAS(T* at, T expected, T value) {
  T old = *at;
  if (old == expected) *at = value;
  return old;
}
template <class T>
T atomicExch(T* at, T value) {
  T old = *at;
  *at = value;
  return old;
}

template <class T>
T __ldg(const T* at) {
  return *at;
}
