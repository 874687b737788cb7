// SPDX-License-Identifier: Apache-2.0
//
// A backend and kernels that work nowhere.
#include <orrery/comm.h>
#include <orrery/kernel.h>
#include <orrery/plugin.h>

#include <cstdio>
#include <cstring>

namespace {

int32_t no_kernel(void*, char* reason, uint32_t bytes) {
  std::snprintf(reason, bytes, "there is no such machine");
  return 0;
}

int32_t no_comm(void*, orr_comm_caps*, char* reason, uint32_t bytes) {
  return no_kernel(nullptr, reason, bytes);
}

const void* get(void*, const char* id, uint32_t) {
  static orr_kernel_api kernel{};
  static orr_comm_api comm{};
  kernel.size = sizeof kernel, kernel.probe = no_kernel;
  std::strcpy(kernel.device, "host");
  comm.size = sizeof comm, comm.probe = no_comm;
  if (std::strcmp(id, "kernel") == 0) return &kernel;
  return std::strcmp(id, "comm") == 0 ? &comm : nullptr;
}

orr_status* entry(const orr_bootstrap*, orr_exports* out) {
  out->get = get;
  return nullptr;
}

}  // namespace

ORR_PLUGIN(ORR_KIND_KERNEL | ORR_KIND_COMM, "absent", "1.0.0", "Works nowhere", entry, 2,
           {{"kernel", 1, 1}, {"comm", 1, 1}})
