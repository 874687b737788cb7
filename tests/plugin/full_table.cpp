// SPDX-License-Identifier: Apache-2.0
//
// An observer that does nothing, with symbols of other libraries to lose.
#include <orrery/observer.h>
#include <orrery/plugin.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

orr_status* start(void*, const orr_observer_config*) { return nullptr; }
orr_status* observe(void*, const orr_event_record*) { return nullptr; }
void stop(void*) {}

const orr_observer_api table = {sizeof(orr_observer_api), nullptr, start, observe, stop, nullptr};

const void* get(void*, const char* id, uint32_t) {
  return std::strcmp(id, "observer") == 0 ? &table : nullptr;
}

orr_status* entry(const orr_bootstrap*, orr_exports* out) {
  if (std::getenv("ORRERY_TEST_NOTHING_GIVEN")) return nullptr;
  out->get = get;
  return nullptr;
}

}  // namespace

ORR_PLUGIN(ORR_KIND_OBSERVER, "full", "1.0.0", "Nothing", entry, 1, {{"observer", 1, 1}})
