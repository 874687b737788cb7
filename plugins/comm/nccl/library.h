// SPDX-License-Identifier: Apache-2.0
//
// NVIDIA's driver and NCCL, opened when they are asked for: the plugin links to neither, so that it
// loads everywhere and can say what is missing. ORRERY_CUDA_LIBRARY and ORRERY_NCCL_LIBRARY name
// other files than libcuda.so.1 and libnccl.so.2.
#pragma once

#include <cuda.h>
#include <nccl.h>

#include <string>

namespace nccl {

// Some names are macros for the version of the function that this header describes.
// clang-format off
#define ORR_CUDA_FUNCTIONS(X)                                                                     \
  X(cuInit) X(cuGetErrorString) X(cuDeviceGet) X(cuDeviceGetCount) X(cuDeviceGetUuid)             \
  X(cuDevicePrimaryCtxRetain) X(cuDevicePrimaryCtxRelease) X(cuCtxSetCurrent)                     \
  X(cuStreamCreate) X(cuStreamDestroy) X(cuStreamQuery) X(cuEventCreate) X(cuEventDestroy)        \
  X(cuEventRecord) X(cuEventQuery) X(cuMemAlloc) X(cuMemFree) X(cuMemAllocHost)                   \
  X(cuMemFreeHost) X(cuMemcpyHtoDAsync) X(cuMemcpyDtoHAsync) X(cuMemsetD8Async)
#define ORR_NCCL_FUNCTIONS(X)                                                                     \
  X(ncclGetVersion) X(ncclGetErrorString) X(ncclGetLastError) X(ncclGetUniqueId)                  \
  X(ncclCommInitRankConfig) X(ncclCommSplit) X(ncclCommGetAsyncError) X(ncclCommFinalize)         \
  X(ncclCommDestroy) X(ncclCommAbort) X(ncclGroupStart) X(ncclGroupEnd) X(ncclAllReduce)          \
  X(ncclReduce) X(ncclBroadcast) X(ncclReduceScatter) X(ncclAllGather) X(ncclSend) X(ncclRecv)
// clang-format on

struct Library {
  // Throws orr::Error, ORR_UNAVAILABLE, with the reason and the remedy.
  Library();
  Library(const Library&) = delete;

#define ORR_MEMBER(name) decltype(&::name) name = nullptr;
  ORR_CUDA_FUNCTIONS(ORR_MEMBER)
  ORR_NCCL_FUNCTIONS(ORR_MEMBER)
#undef ORR_MEMBER

  // Null where the library is older than they: revoke came with 2.28, windows with 2.27.
  ncclResult_t (*revoke)(ncclComm_t, int) = nullptr;
  ncclResult_t (*memory_allocate)(void**, size_t) = nullptr;
  ncclResult_t (*memory_free)(void*) = nullptr;
  ncclResult_t (*window_register)(ncclComm_t, void*, size_t, void**, int) = nullptr;
  ncclResult_t (*window_deregister)(ncclComm_t, void*) = nullptr;
  ncclResult_t (*buffer_register)(ncclComm_t, void*, size_t, void**) = nullptr;
  ncclResult_t (*buffer_deregister)(ncclComm_t, void*) = nullptr;

  std::string version;  // "2.28.9"
};

// Both libraries, opened at the first call. Throws as the constructor does.
const Library& library();

// "" if NCCL and a GPU are here, else what is missing. [any thread]
std::string why_not_here();

// Throw orr::Error, ORR_FAILED, with the library's own words unless the code is a success.
void check_cuda(CUresult code, const char* what);
void check_nccl(ncclResult_t code, const char* what);

}  // namespace nccl
