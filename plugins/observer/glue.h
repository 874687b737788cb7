// SPDX-License-Identifier: Apache-2.0
//
// The tables of an observer that is an object with kName, start, observe, stop and wants. A script
// with several runs has an object for each, in a directory of its own. Once the job has begun, an
// observer whose file cannot be written says so and observes no more: training matters more than
// what watches it.
#pragma once

#include <orrery/observer.h>
#include <orrery/sdk/plugin.hpp>

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "text_file.h"

namespace observer {

// Fields that hosts older than this header do not have.
inline std::string_view detail(const orr_event_record& event) {
  return event.detail ? event.detail : "";
}
inline std::string_view options(const orr_observer_config& config) {
  const bool has = config.size >= offsetof(orr_observer_config, options) + sizeof config.options;
  return has && config.options ? config.options : "";
}
// Whether this observer leaves a directory alone that nobody has named: it has no options.
inline bool is_by_default(const orr_observer_config& config) {
  const bool has =
      config.size >= offsetof(orr_observer_config, by_default) + sizeof config.by_default;
  return has && config.by_default && options(config).empty();
}
// Whether it has what spans, facts and tensors need.
inline bool is_long(const orr_event_record& event) {
  return event.size >= offsetof(orr_event_record, count) + sizeof event.count;
}
inline std::string_view run(const orr_event_record& event) {
  const bool has = event.size >= offsetof(orr_event_record, run) + sizeof event.run;
  return has && event.run ? event.run : "";
}

// The objects of a plugin, and the functions that call them.
template <class T>
struct Glue {
  struct One {
    T object;
    bool gave_up = false, begun = false;
  };
  static inline One first;
  static inline std::map<std::string, One, std::less<>> further;
  static inline orr_observer_config config;  // of the job
  static inline std::string given_options;

  // A directory that cannot be written to is an error of the job until it has begun, a full disk
  // never is.
  template <class Work>
  static orr_status* guarded(One& one, Work work) {
    return orr::guard([&] {
      if (one.gave_up) return;
      try {
        work(one.object);
      } catch (const FileError& e) {
        if (!e.full && !one.begun) throw;
        one.gave_up = true;
        const std::string words = std::string("observer ") + T::kName + ": " + e.what() +
                                  "; it observes no more, and the run goes on";
        orr::host->log(ORR_LOG_WARN, words.c_str());
      }
    });
  }

  static orr_status* start(void*, const orr_observer_config* given) {
    given_options = options(*given);
    config = {sizeof config,   given->rank,           given->world_size,    "",
              given->terminal, given_options.c_str(), is_by_default(*given)};
    first.gave_up = first.begun = false;
    return guarded(first, [&](T& object) { object.start(*given); });
  }

  static orr_status* begin(const orr_event_record& event) {
    One& one = further[std::string(run(event))];
    one.begun = true;
    return guarded(one, [&](T& object) {
      config.directory = event.text;
      object.start(config);
      orr_event_record as_first = event;
      as_first.size = sizeof as_first, as_first.kind = ORR_EVENT_RUN_BEGIN;
      object.observe(as_first);
    });
  }

  static void end(One& one) {
    orr::host->error_release(guarded(one, [](T& object) { object.stop(); }));
  }

  static orr_status* observe(void*, const orr_event_record* event) {
    if (run(*event).empty()) {
      orr_status* const status = guarded(first, [&](T& object) { object.observe(*event); });
      first.begun = true;
      return status;
    }
    if (event->kind == ORR_EVENT_FURTHER_BEGIN) return begin(*event);
    const auto at = further.find(run(*event));
    if (at == further.end()) return nullptr;
    if (event->kind != ORR_EVENT_FURTHER_END)
      return guarded(at->second, [&](T& object) { object.observe(*event); });
    end(at->second);
    further.erase(at);
    return nullptr;
  }

  static void stop(void*) {
    for (auto& [name, one] : further) end(one);
    further.clear();
    end(first);
    first.object = T();
  }

  static inline const orr_observer_api table = {
      sizeof(orr_observer_api), nullptr, start, observe, stop,
      // Also of one that gave up: ranks ask for the gradients of a step together.
      [](void*, int64_t step) { return first.object.wants(step); }};

  static orr_status* entry(const orr_bootstrap* boot, orr_exports* out) {
    if (!orr::attach(boot)) return nullptr;
    out->get = [](void*, const char* id, uint32_t) -> const void* {
      return std::string_view(id) == "observer" ? &table : nullptr;
    };
    return nullptr;
  }
};

}  // namespace observer
