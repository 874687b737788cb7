// SPDX-License-Identifier: Apache-2.0
#include "device.h"

#include <algorithm>
#include <cstring>

#include <orrery/sdk/plugin.hpp>

#include "graph.h"
#include "late.h"
#include "memory.h"
#include "stream.h"

namespace orr_cuda {
namespace {

Opened& state() {
  static Opened device;
  return device;
}

orr_status* open(void*, int32_t local_rank, int32_t) {
  return orr::guard([&] {
    Opened& o = state();
    if (o.context) throw orr::Error(ORR_INVALID, "the device 'cuda' is open already");
    const std::string missing = why_not_here();
    if (!missing.empty()) throw orr::Error(ORR_UNAVAILABLE, missing);
    int devices = 0;
    ORR_DRIVER(cuDeviceGetCount, &devices);
    ORR_DRIVER(cuDeviceGet, &o.device, local_rank % devices);
    o.arch = attribute_of(o.device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) * 10 +
             attribute_of(o.device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    ORR_DRIVER(cuDevicePrimaryCtxRetain, &o.context, o.device);
    enter();
    open_late();
  });
}

orr_status* facts(void*, orr_device_facts* out) {
  return orr::guard([&] {
    const orr_device_facts known = facts_of(state().context ? state().device : 0);
    const uint32_t size = out->size;
    std::memcpy(out, &known, std::min<size_t>(size, sizeof known));
    out->size = size;
  });
}

}  // namespace

const Opened& opened() {
  if (!state().context) throw orr::Error(ORR_INVALID, "the device 'cuda' has not been opened");
  return state();
}

void enter() { ORR_DRIVER(cuCtxSetCurrent, opened().context); }

CUdeviceptr address(const orr_buffer& buffer) {
  if (std::strcmp(buffer.memory->native_kind, "cuda") != 0)
    throw orr::Error(ORR_INVALID, std::string("a kernel of the device 'cuda' got memory of '") +
                                      buffer.memory->native_kind +
                                      "': copy it to the device first");
  return reinterpret_cast<CUdeviceptr>(buffer.memory->native) + buffer.offset;
}

const orr_device_api device_api = {sizeof(orr_device_api),
                                   nullptr,
                                   facts,
                                   allocate,
                                   free_memory,
                                   copy,
                                   stream_create,
                                   stream_destroy,
                                   event_create,
                                   event_destroy,
                                   event_record,
                                   stream_wait,
                                   event_sync,
                                   open,
                                   capture_begin,
                                   capture_end,
                                   graph_launch,
                                   graph_destroy,
                                   stream_create_urgent};

}  // namespace orr_cuda
