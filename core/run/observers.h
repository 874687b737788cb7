// SPDX-License-Identifier: Apache-2.0
//
// Sends the events of a run to the observer plugins. [main thread]
#pragma once

#include <orrery/observer.h>

#include <string>
#include <vector>

namespace orrery {

class Observers {
 public:
  // Starts every observer plugin that is installed.
  void start(int rank, int world_size, const std::string& directory);
  void step_end(int64_t step, double seconds);
  void metric(int64_t step, const std::string& tag, double value);
  void log(const std::string& line);
  void begin(int64_t planned_steps);
  void failure(const std::string& error);
  void stop();

 private:
  void send(orr_event_record event);
  struct Active {
    const orr_observer_api* api;
    std::string name;
  };
  std::vector<Active> active_;
  int rank_ = 0, world_size_ = 1;
  std::string directory_;
};

}  // namespace orrery
