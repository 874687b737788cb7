// SPDX-License-Identifier: Apache-2.0
//
// The tables of an observer that is an object with kName, start, observe, stop and wants. Once the
// run has begun, an observer whose file cannot be written says so and observes no more: training
// matters more than what watches it.
#pragma once

#include <orrery/observer.h>
#include <orrery/sdk/plugin.hpp>

#include <cstddef>
#include <string_view>
#include <utility>

#include "text_file.h"

namespace observer {

// The one object of a plugin, and the functions that call it.
template <class T>
struct Glue {
  static inline T object;
  static inline bool gave_up = false, begun = false;

  // A directory that cannot be written to is an error of the run until it has begun, a full disk
  // never is.
  template <class Work>
  static orr_status* guarded(Work work) {
    return orr::guard([&] {
      if (gave_up) return;
      try {
        work();
      } catch (const FileError& e) {
        if (!e.full && !begun) throw;
        gave_up = true;
        const std::string words = std::string("observer ") + T::kName + ": " + e.what() +
                                  "; it observes no more, and the run goes on";
        orr::host->log(ORR_LOG_WARN, words.c_str());
      }
    });
  }

  static inline const orr_observer_api table = {
      sizeof(orr_observer_api), nullptr,
      [](void*, const orr_observer_config* config) {
        gave_up = begun = false;
        return guarded([&] { object.start(*config); });
      },
      [](void*, const orr_event_record* event) {
        orr_status* const status = guarded([&] { object.observe(*event); });
        begun = true;
        return status;
      },
      [](void*) {
        orr::host->error_release(guarded([] { object.stop(); }));
        object = T();
      },
      // Also of one that gave up: ranks ask for the gradients of a step together.
      [](void*, int64_t step) { return object.wants(step); }};

  static orr_status* entry(const orr_bootstrap* boot, orr_exports* out) {
    if (!orr::attach(boot)) return nullptr;
    out->get = [](void*, const char* id, uint32_t) -> const void* {
      return std::string_view(id) == "observer" ? &table : nullptr;
    };
    return nullptr;
  }
};

// Fields that hosts older than this header do not have.
inline std::string_view detail(const orr_event_record& event) {
  return event.detail ? event.detail : "";
}
inline std::string_view options(const orr_observer_config& config) {
  const bool has = config.size >= offsetof(orr_observer_config, options) + sizeof config.options;
  return has && config.options ? config.options : "";
}
inline bool is_long(const orr_event_record& event) { return event.size >= sizeof event; }

}  // namespace observer
