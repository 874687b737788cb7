// SPDX-License-Identifier: Apache-2.0
//
// The plugin "opencl": a device and its kernels.
#include <orrery/sdk/plugin.hpp>

#include "tables.h"

namespace {

const void* get_table(void*, const char* id, uint32_t version) {
  if (version != 1) return nullptr;
  if (std::string_view(id) == "kernel") return &ocl::kernel_table;
  return std::string_view(id) == "device" ? &ocl::device_table : nullptr;
}

orr_status* entry(const orr_bootstrap* boot, orr_exports* out) {
  orr::attach(boot);
  *out = {sizeof *out, nullptr, get_table, nullptr};
  return nullptr;
}

}  // namespace

ORR_PLUGIN(ORR_KIND_KERNEL | ORR_KIND_DEVICE, "opencl", "0.1.0",
           "Any OpenCL device: memory, queues and plain kernels", entry, 2,
           {{"kernel", 1, 1}, {"device", 1, 1}})
