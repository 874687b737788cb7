// @name@: counts the steps of a run and the time they took. See orrery/observer.h for the events.
#include <orrery/observer.h>
#include <orrery/sdk/plugin.hpp>

#include <cstdio>

namespace {

struct Counts {
  int64_t steps = 0;
  double seconds = 0;
  bool speaks = false;
};
Counts counts;

orr_status* start(void*, const orr_observer_config* config) {
  return orr::guard([&] { counts = Counts{0, 0, config->rank == 0}; });
}

void report() {
  char line[96];
  std::snprintf(line, sizeof line, "@name@: %lld steps in %.3f s",
                static_cast<long long>(counts.steps), counts.seconds);
  orr::host->log(ORR_LOG_INFO, line);
}

orr_status* observe(void*, const orr_event_record* event) {
  return orr::guard([&] {
    switch (event->kind) {
      case ORR_EVENT_STEP_END:
        ++counts.steps;
        counts.seconds += event->seconds;
        break;
      case ORR_EVENT_RUN_END:
        if (counts.speaks && counts.steps > 0) report();
        break;
      default: break;  // newer hosts have more
    }
  });
}

void stop(void*) {}

const orr_observer_api table = {sizeof(orr_observer_api), nullptr, start, observe, stop, nullptr};

orr_status* entry(const orr_bootstrap* boot, orr_exports* out) {
  orr::attach(boot);
  out->get = [](void*, const char* id, uint32_t version) -> const void* {
    return std::string_view(id) == "observer" && version == 1 ? &table : nullptr;
  };
  return nullptr;
}

}  // namespace

ORR_PLUGIN(ORR_KIND_OBSERVER, "@name@", "0.1.0", "Counts steps and their time", entry, 1,
           {{"observer", 1, 1}})
