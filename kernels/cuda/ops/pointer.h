// SPDX-License-Identifier: Apache-2.0
//
// Converts a device address to the pointer type in the arguments of device functions.
#pragma once

#include <cuda.h>

namespace orr_cuda {

inline void* pointer(CUdeviceptr at) { return reinterpret_cast<void*>(at); }

}  // namespace orr_cuda
