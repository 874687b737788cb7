// SPDX-License-Identifier: Apache-2.0
//
// The memory slots of device/1 (allocations and copies between tiers), and memory for the plugin's
// own use.
#pragma once

#include <cuda.h>
#include <orrery/device.h>

#include <cstddef>

namespace orr_cuda {

orr_status* allocate(void*, int32_t tier, uint64_t bytes, orr_memory** out);
void free_memory(void*, orr_memory* memory);
orr_status* copy(void*, orr_stream* stream, const orr_buffer* to, const orr_buffer* from);

// Zeros in the host's memory, at one address for host and device.
void* allocate_pinned(size_t bytes);

// Memory of the device for the plugin's own use, outside of steps. It is not initialised.
class OwnMemory {
 public:
  explicit OwnMemory(size_t bytes);
  ~OwnMemory();
  OwnMemory(const OwnMemory&) = delete;
  CUdeviceptr get() const { return place_; }

 private:
  CUdeviceptr place_ = 0;
};

}  // namespace orr_cuda
