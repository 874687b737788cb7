// SPDX-License-Identifier: Apache-2.0
//
// Bad observers.
#include "fault.h"
#include "good_observer.cpp"
#pragma pop_macro("ORR_PLUGIN")

#include <unistd.h>

#include <cstdlib>

namespace {

const char* kept = nullptr;
int starts = 0;

orr_status* bad_start(void* self, const orr_observer_config* config) {
  if (fault("starts_only_once") && ++starts > 1)
    return orr::host->error(ORR_FAILED, "already started");
  if (fault("fails_without_words") && config->directory[0]) return orr::host->error(ORR_FAILED, "");
  return table.start(self, config);
}

orr_status* bad_observe(void* self, const orr_event_record* event) {
  if (fault("keeps_borrowed_texts")) {
    static volatile char last;
    if (kept) last = *kept;
    static_cast<void>(last);
    kept = event->text;
  }
  if (fault("refuses_unknown_events") && event->kind > ORR_EVENT_RUN_END)
    return orr::host->error(ORR_INVALID, "no such event");
  if (fault("leaks_per_event")) leak(16);
  if (fault("stops_the_run") && event->kind == ORR_EVENT_STEP_END && event->step == 3) std::exit(0);
  if (fault("throws_at_failures") && event->kind == ORR_EVENT_FAILURE)
    throw std::runtime_error("thrown across the border");
  while (fault("loops_at_an_event")) pause();
  if (fault("overflows_the_stack")) deeper(nullptr);
  return table.observe(self, event);
}

orr_observer_api bad_table() {
  orr_observer_api bad = table;
  bad.start = bad_start, bad.observe = bad_observe;
  return bad;
}

const orr_observer_api bad = bad_table();

orr_status* bad_entry(const orr_bootstrap* boot, orr_exports* out) {
  entry(boot, out);
  out->get = [](void*, const char* id, uint32_t version) -> const void* {
    return std::string_view(id) == "observer" && version == 1 ? &bad : nullptr;
  };
  return nullptr;
}

}  // namespace

ORR_PLUGIN(ORR_KIND_OBSERVER, FAULT_NAME, "0.1.0", "A bad observer", bad_entry, 1,
           {{"observer", 1, 1}})
