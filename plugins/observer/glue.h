// SPDX-License-Identifier: Apache-2.0
//
// The tables of an observer that is an object with start, observe, stop and wants.
#pragma once

#include <orrery/observer.h>
#include <orrery/sdk/plugin.hpp>

#include <cstddef>
#include <string_view>

namespace observer {

// The one object of a plugin, and the functions that call it.
template <class T>
struct Glue {
  static inline T object;
  static inline const orr_observer_api table = {
      sizeof(orr_observer_api),
      nullptr,
      [](void*, const orr_observer_config* config) {
        return orr::guard([&] { object.start(*config); });
      },
      [](void*, const orr_event_record* event) {
        return orr::guard([&] { object.observe(*event); });
      },
      [](void*) { orr::host->error_release(orr::guard([] { object.stop(); })); },
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
