// SPDX-License-Identifier: Apache-2.0
//
// NVIDIA's driver library, opened at its first use. The plugin is not linked to any library of
// CUDA, so that it can be loaded everywhere and say what is missing. ORRERY_CUDA_LIBRARY names
// another file than libcuda.so.1.
#pragma once

#include <cuda.h>

#include <memory>
#include <string>
#include <type_traits>

#include "library.h"

namespace orr_cuda {

// Some names are macros for the version of the function that this header describes.
// clang-format off
#define ORR_CUDA_FUNCTIONS(X)                                                                     \
  X(cuInit) X(cuGetErrorString) X(cuDeviceGet) X(cuDeviceGetCount) X(cuDeviceGetName)             \
  X(cuDeviceTotalMem) X(cuDeviceGetAttribute) X(cuDevicePrimaryCtxRetain) X(cuCtxSetCurrent)      \
  X(cuStreamCreate) X(cuStreamDestroy) X(cuStreamWaitEvent) X(cuStreamBeginCapture)               \
  X(cuStreamEndCapture) X(cuGraphInstantiate) X(cuGraphLaunch) X(cuGraphExecDestroy)              \
  X(cuGraphDestroy) X(cuEventCreate) X(cuEventDestroy) X(cuEventRecord) X(cuEventQuery)           \
  X(cuGraphKernelNodeSetParams) X(cuEventElapsedTime) X(cuDriverGetVersion)                       \
  X(cuMemAlloc) X(cuMemFree) X(cuMemHostAlloc) X(cuMemFreeHost) X(cuMemcpyAsync)                  \
  X(cuMemsetD8Async) X(cuModuleLoadData) X(cuModuleGetFunction) X(cuFuncSetAttribute)             \
  X(cuLaunchKernel) X(cuCtxGetStreamPriorityRange) X(cuStreamCreateWithPriority)                  \
  X(cuMemsetD2D8Async)
// clang-format on

struct Driver {
  // Throws orr::Error (ORR_UNAVAILABLE) with the reason and the remedy.
  Driver();
  Driver(const Driver&) = delete;

  ORR_CUDA_FUNCTIONS(ORR_MEMBER)
  // Which version a header describes depends on the toolkit; every driver since 11.3 has this one.
  CUresult (*cuStreamGetCaptureInfo_v2)(CUstream, CUstreamCaptureStatus*, cuuint64_t* id, CUgraph*,
                                        const CUgraphNode** dependencies, size_t* count) = nullptr;
};

// The driver library. The first call opens it, and throws as the constructor does. [any thread]
const Driver& driver();

// Says what this machine lacks to run CUDA: a driver or a GPU. "" if it has both. [any thread]
std::string why_not_here();

// Throws orr::Error (ORR_FAILED) with the driver's text, unless the code is success.
void check(CUresult code, const char* what);
// Calls a function of the driver, with this check.
#define ORR_DRIVER(name, ...) check(driver().name(__VA_ARGS__), #name)

// An object that the driver makes, and this function destroys.
template <class T>
using DriverObject = std::unique_ptr<std::remove_pointer_t<T>, CUresult (*)(T)>;

}  // namespace orr_cuda
