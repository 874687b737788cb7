// SPDX-License-Identifier: Apache-2.0
//
// Sends the events of a run to the observer plugins. [main thread]
#pragma once

#include <orrery/observer.h>

#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace orrery {

class Observers {
 public:
  // Starts every observer plugin that is installed and not "off" in RuntimeOptions::observe.
  // `by_default`: the user has not named the directory.
  void start(int rank, int world_size, const std::string& directory, bool by_default);
  void step_end(int64_t step, double seconds);
  void metric(int64_t step, const std::string& tag, double value);
  void log(const std::string& line);
  // A fact of the run: a number, or a text if `text` is not "". Facts that come before the run
  // begins are sent when it does.
  void fact(const std::string& name, double value, const std::string& text = "");
  void send(orr_event_record event);
  // The sum of what all observers want of this step.
  int32_t wants(int64_t step) const;
  bool has_named_directory() const { return !directory_.empty() && !by_default_; }
  void begin(int64_t planned_steps);
  // Says anew how many steps the run will take, if it has begun before that was known.
  void plan(int64_t planned_steps);

  // Until it goes, events are of this run (orr_event_record.run).
  class Scope {
   public:
    Scope(Observers& to, const std::string& run) : to_(to), outer_(to.run_) { to.run_ = run; }
    ~Scope() { to_.run_ = outer_; }
    Scope(const Scope&) = delete;

   private:
    Observers& to_;
    const std::string outer_;
  };
  // The scope of a run; a run other than the first begins with its first. Its directory is made
  // below the job's.
  Scope of(const std::string& run, int64_t planned_steps);
  // The run is gone. Throws nothing.
  void end(const std::string& run) noexcept;

  void failure(const std::string& error, bool stopped);
  void stop();

 private:
  struct Active {
    const orr_observer_api* api;
    std::string name;
  };
  std::vector<Active> active_;
  int rank_ = 0, world_size_ = 1;
  std::string directory_;
  bool by_default_ = false;
  bool begun_ = false;
  int64_t planned_steps_ = 0;
  std::string run_;                // that events are of now
  std::set<std::string> further_;  // the runs that have begun, but for the first
  std::vector<std::tuple<std::string, double, std::string>> early_;
};

}  // namespace orrery
