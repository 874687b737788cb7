// SPDX-License-Identifier: Apache-2.0
//
// What the fake tells of its devices, pinned memory, and copies between any two kinds of memory.
#include <cuda.h>

#include <cstdio>
#include <cstring>
#include <thread>

#include "fake_nccl/driver.h"
#include "fake_nccl/memory.h"
#include "fake_nccl/misuse.h"

namespace fake {

namespace {

// One side of a copy.
struct Side {
  char* bytes;
  bool waits;  // ordinary memory: the driver holds the caller up
};

Side side_of(CUdeviceptr address, size_t bytes) {
  void* at = reinterpret_cast<void*>(address);
  if (char* place = memory::look_behind(at, bytes)) return {place, false};
  if (memory::look_behind(at, 1)) misuse("copy past the end of device memory", "cuMemcpyAsync");
  return {static_cast<char*>(at), !memory::is_pinned(at, bytes)};
}

}  // namespace
}  // namespace fake

using namespace fake;

extern "C" {

// For tests: how often a function of the driver was called.
unsigned long long fake_cuda_calls(const char* what) { return calls(what); }

CUresult cuDriverGetVersion(int* version) {
  *version = 13000;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char* name, int bytes, CUdevice) {
  snprintf(name, static_cast<size_t>(bytes), "fake GPU");  // those of a host are alike
  return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem(size_t* bytes, CUdevice) {
  *bytes = size_t{16} << 30;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute which, CUdevice) {
  switch (which) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = 9; break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *value = 0; break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = 132; break;
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE: *value = 1'980'000; break;
    case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE: *value = 3'201'000; break;
    case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH: *value = 6144; break;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

CUresult cuMemHostAlloc(void** address, size_t bytes, unsigned) {
  forbid_in_capture("cuMemHostAlloc");
  *address = memory::allocate_pinned(bytes);
  return enter_driver("cuMemHostAlloc");
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream s) {
  if (const CUresult r = enter_driver("cuMemcpyAsync")) return r;
  const Side target = side_of(to, bytes), source = side_of(from, bytes);
  Stream& stream = stream_of(s);
  if (target.waits || source.waits) {
    forbid_in_capture("cuMemcpyAsync of ordinary memory");
    note_call("waiting copy");
  }
  stream.enqueue("cuMemcpyAsync", {{target.bytes, bytes, true}, {source.bytes, bytes, false}},
                 [=] { std::memmove(target.bytes, source.bytes, bytes); });
  if (target.waits || source.waits)
    for (const uint64_t last = stream.last(); stream.done() < last;) std::this_thread::yield();
  return CUDA_SUCCESS;
}

}  // extern "C"
