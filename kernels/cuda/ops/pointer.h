// SPDX-License-Identifier: Apache-2.0
//
// An address of the device as the arguments of device functions hold it.
#pragma once

#include <cuda.h>

namespace orr_cuda {

inline void* pointer(CUdeviceptr at) { return reinterpret_cast<void*>(at); }

}  // namespace orr_cuda
