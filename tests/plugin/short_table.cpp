// SPDX-License-Identifier: Apache-2.0
//
// A plugin as one built with older headers would be: its kernel table ends before `launch`, and its
// observer table leaves slots empty.
#include <orrery/kernel.h>
#include <orrery/observer.h>
#include <orrery/plugin.h>

#include <cstddef>
#include <cstring>

namespace {

int32_t probe(void*, char*, uint32_t) { return 7; }

const orr_kernel_api kernel = {.size = offsetof(orr_kernel_api, release),
                               .self = nullptr,
                               .device = "host",
                               .probe = probe,
                               .supports = nullptr,
                               .measure = nullptr,
                               .prepare = nullptr,
                               .release = nullptr,
                               .launch = nullptr,
                               .claim = nullptr};
const orr_observer_api observer = {
    sizeof(orr_observer_api), nullptr, nullptr, nullptr, nullptr, nullptr};

const void* get(void*, const char* id, uint32_t) {
  if (std::strcmp(id, "kernel") == 0) return &kernel;
  return std::strcmp(id, "observer") == 0 ? &observer : nullptr;
}

orr_status* entry(const orr_bootstrap*, orr_exports* out) {
  out->get = get;
  return nullptr;
}

}  // namespace

ORR_PLUGIN(ORR_KIND_KERNEL | ORR_KIND_OBSERVER | ORR_KIND_STRATEGY, "short", "0.9.0",
           "A table with holes, for the test of holes", entry, 3,
           {{"kernel", 1, 1}, {"observer", 1, 1}, {"strategy", 2, 3}})
