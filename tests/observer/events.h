// SPDX-License-Identifier: Apache-2.0
//
// Feeding an observer plugin, found the way a run finds it: in the build tree, without variables.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "plugin/host.h"
#include "plugin/registry.h"

namespace orrery {

class Observer {
 public:
  explicit Observer(const std::string& name) : api_(Registry::get().observer(name)) {}
  ~Observer() { stop(); }

  void start(int rank, const std::string& directory, bool terminal) {
    const orr_observer_config config{sizeof config, rank, 2, directory.c_str(), terminal, "", 0};
    check(api_.start(api_.self, &config));
  }
  void stop() { api_.stop(api_.self); }

  void begin(double steps, double time) { send(ORR_EVENT_RUN_BEGIN, 0, steps, time, ""); }
  void metric(int64_t step, const char* tag, double value, double time) {
    send(ORR_EVENT_METRIC, step, value, time, tag);
  }
  void step_end(int64_t step, double time) { send(ORR_EVENT_STEP_END, step, 0, time, ""); }
  void send(int kind, int64_t step, double value, double time, const char* text) {
    orr_event_record event{};
    event.size = sizeof event, event.kind = kind, event.world_size = 2, event.step = step;
    event.value = value, event.seconds = 0.5, event.time = time, event.text = text;
    check(api_.observe(api_.self, &event));
  }

 private:
  const orr_observer_api& api_;
};

}  // namespace orrery
