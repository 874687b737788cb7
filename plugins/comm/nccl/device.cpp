// SPDX-License-Identifier: Apache-2.0
#include "device.h"

#include <cstdio>

#include <orrery/sdk/plugin.hpp>

namespace nccl {

Device::Device(int local_rank) {
  const Library& lib = library();
  check_cuda(lib.cuInit(0), "cuInit");
  check_cuda(lib.cuDeviceGetCount(&devices_), "cuDeviceGetCount");
  if (devices_ < 1)
    throw orr::Error(ORR_UNAVAILABLE, "the NVIDIA driver shows no GPU: see CUDA_VISIBLE_DEVICES");
  check_cuda(lib.cuDeviceGet(&device_, local_rank % devices_), "cuDeviceGet");
  CUuuid uuid;
  check_cuda(lib.cuDeviceGetUuid(&uuid, device_), "cuDeviceGetUuid");
  for (char byte : uuid.bytes) {
    char two[3];
    snprintf(two, sizeof two, "%02x", static_cast<unsigned char>(byte));
    identity_ += two;
  }
  check_cuda(lib.cuDevicePrimaryCtxRetain(&context_, device_), "cuDevicePrimaryCtxRetain");
  enter();
  check_cuda(lib.cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
}

Device::~Device() {
  library().cuCtxSetCurrent(context_);
  library().cuStreamDestroy(stream_);
  library().cuDevicePrimaryCtxRelease(device_);
}

void Device::enter() const { check_cuda(library().cuCtxSetCurrent(context_), "cuCtxSetCurrent"); }

Event::Event() {
  check_cuda(library().cuEventCreate(&event_, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
}
Event::~Event() { library().cuEventDestroy(event_); }

void Event::record(CUstream stream) {
  check_cuda(library().cuEventRecord(event_, stream), "cuEventRecord");
}

bool Event::done() const {
  const CUresult state = library().cuEventQuery(event_);
  if (state != CUDA_ERROR_NOT_READY) check_cuda(state, "cuEventQuery");
  return state == CUDA_SUCCESS;
}

Staging::Staging() {
  for (Slot& s : slots_) {
    void* pinned = nullptr;
    check_cuda(library().cuMemAllocHost(&pinned, slot_bytes), "cuMemAllocHost");
    s.pinned = static_cast<char*>(pinned);
    check_cuda(library().cuMemAlloc(&s.device, slot_bytes), "cuMemAlloc");
  }
}

Staging::~Staging() {
  for (Slot& s : slots_) {
    library().cuMemFreeHost(s.pinned);
    library().cuMemFree(s.device);
  }
  if (ground_) library().cuMemFree(ground_);
}

CUdeviceptr Staging::ground(int64_t bytes) {
  if (bytes <= ground_bytes_) return ground_;
  if (ground_) check_cuda(library().cuMemFree(ground_), "cuMemFree");
  ground_ = 0, ground_bytes_ = 0;
  check_cuda(library().cuMemAlloc(&ground_, bytes), "cuMemAlloc");
  ground_bytes_ = bytes;
  return ground_;
}

}  // namespace nccl
