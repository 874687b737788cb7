// SPDX-License-Identifier: Apache-2.0
#include "device.h"

#include <algorithm>

#include <orrery/sdk/plugin.hpp>

namespace orr_cuda {
namespace {

// Context, cuBLASLt's kernels and those of this plugin; read off as what the first step takes.
constexpr uint64_t outside = uint64_t{1} << 30;
constexpr uint64_t alignment = 256;
constexpr uint64_t row_alignment = 16;  // of what cuBLASLt loads at once

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

}  // namespace

int attribute_of(CUdevice device, CUdevice_attribute which) {
  int value = 0;
  ORR_DRIVER(cuDeviceGetAttribute, &value, which, device);
  return value;
}

orr_device_facts facts_of(CUdevice device) {
  orr_device_facts out{};
  out.size = sizeof out;
  orr::copy_text(out.name, "cuda");
  out.alignment = alignment;
  out.outside = outside;
  out.row_alignment = row_alignment;
  if (!why_not_here().empty()) return out;
  size_t total = 0;
  ORR_DRIVER(cuDeviceGetName, out.model, sizeof out.model, device);
  ORR_DRIVER(cuDeviceTotalMem, &total, device);
  out.memory = total - std::min<uint64_t>(total, outside);
  out.peak_flops = peak_flops(device);
  out.bandwidth = bandwidth(device);
  return out;
}

}  // namespace orr_cuda
