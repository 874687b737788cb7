// SPDX-License-Identifier: Apache-2.0
#include "memory.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "device.h"
#include "stream.h"

namespace orr_cuda {
namespace {

void* allocate_device(size_t bytes) {
  CUdeviceptr place = 0;
  ORR_DRIVER(cuMemAlloc, &place, bytes);
  const OwnStream stream;
  ORR_DRIVER(cuMemsetD8Async, place, 0, bytes, stream.get());
  stream.drain();
  return reinterpret_cast<void*>(place);
}

// Host addresses are device addresses too.
CUdeviceptr either_address(const orr_buffer& buffer) {
  if (buffer.memory->host) return reinterpret_cast<CUdeviceptr>(orr_buffer_host(&buffer));
  return address(buffer);
}

}  // namespace

void* allocate_pinned(size_t bytes) {
  void* place = nullptr;
  ORR_DRIVER(cuMemHostAlloc, &place, bytes, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
  return std::memset(place, 0, bytes);
}

orr_status* allocate(void*, int32_t tier, uint64_t bytes, orr_memory** out) {
  return on_device([&] {
    const bool pinned = tier == ORR_TIER_PINNED;
    if (!pinned && tier != ORR_TIER_DEVICE)
      throw orr::Error(ORR_INVALID, "the device 'cuda' has no memory of tier " +
                                        std::to_string(tier) + ": ask for DEVICE or PINNED");
    auto memory = std::make_unique<orr_memory>();
    const size_t taken = std::max<uint64_t>(bytes, 1);
    void* place = pinned ? allocate_pinned(taken) : allocate_device(taken);
    *memory = {sizeof(orr_memory), tier, bytes, pinned ? place : nullptr, place, "cuda", nullptr};
    *out = memory.release();
  });
}

void free_memory(void*, orr_memory* memory) {
  const std::unique_ptr<orr_memory> given(memory);
  if (!given) return;
  // At the end of a process the driver may be gone before the last owner, and the memory with it.
  if (driver().cuCtxSetCurrent(opened().context) == CUDA_ERROR_DEINITIALIZED) return;
  orr_status* failed = on_device([&] {
    if (given->host)
      ORR_DRIVER(cuMemFreeHost, given->host);
    else
      ORR_DRIVER(cuMemFree, reinterpret_cast<CUdeviceptr>(given->native));
  });
  if (!failed) return;
  orr::host->log(ORR_LOG_WARN, orr::host->error_message(failed));
  orr::host->error_release(failed);
}

orr_status* copy(void*, orr_stream* stream, const orr_buffer* to, const orr_buffer* from) {
  return on_device([&] {
    if (to->bytes != from->bytes)
      throw orr::Error(ORR_INVALID, "a copy of " + std::to_string(from->bytes) + " bytes to " +
                                        std::to_string(to->bytes) + " bytes");
    if (to->bytes == 0) return;
    ORR_DRIVER(cuMemcpyAsync, either_address(*to), either_address(*from), to->bytes, of(stream));
  });
}

OwnMemory::OwnMemory(size_t bytes) { ORR_DRIVER(cuMemAlloc, &place_, std::max<size_t>(bytes, 1)); }

OwnMemory::~OwnMemory() { driver().cuMemFree(place_); }

}  // namespace orr_cuda
