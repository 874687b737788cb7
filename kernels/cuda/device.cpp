// SPDX-License-Identifier: Apache-2.0
#include "device.h"

#include <algorithm>
#include <cstring>

#include <orrery/sdk/plugin.hpp>

#include "late.h"
#include "memory.h"
#include "stream.h"

namespace orr_cuda {
namespace {

// Context, cuBLASLt's kernels and those of this plugin; read off as what the first step takes.
constexpr uint64_t outside_steps = uint64_t{1} << 30;

Opened& state() {
  static Opened device;
  return device;
}

int attribute_of(CUdevice device, CUdevice_attribute which) {
  int value = 0;
  ORR_DRIVER(cuDeviceGetAttribute, &value, which, device);
  return value;
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

// Two operations of each f32 lane per cycle. 64 lanes per multiprocessor in 7.x and 8.0, else 128.
double peak_flops(CUdevice device) {
  const double major = attribute_of(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
               minor = attribute_of(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  const double lanes = major == 7 || (major == 8 && minor == 0) ? 64 : 128;
  return 2 * lanes * attribute_of(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) * 1e3 *
         attribute_of(device, CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
}

// Two transfers per cycle of the memory's clock.
double bandwidth(CUdevice device) {
  return 2e3 * attribute_of(device, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE) *
         attribute_of(device, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH) / 8;
}

// What planning needs; without a driver what is the same for all devices.
orr_status* facts(void*, orr_device_facts* out) {
  return orr::guard([&] {
    const CUdevice device = state().device;
    orr_device_facts known{};
    known.size = out->size;
    orr::copy_text(known.name, "cuda");
    known.alignment = 256;
    known.outside = outside_steps;
    known.row_alignment = 16;  // of what cuBLASLt loads at once
    if (why_not_here().empty()) {
      size_t total = 0;
      ORR_DRIVER(cuDeviceGetName, known.model, sizeof known.model, device);
      ORR_DRIVER(cuDeviceTotalMem, &total, device);
      known.memory = total - std::min<uint64_t>(total, outside_steps);
      known.peak_flops = peak_flops(device);
      known.bandwidth = bandwidth(device);
    }
    std::memcpy(out, &known, std::min<size_t>(out->size, sizeof known));
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
