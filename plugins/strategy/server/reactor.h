// SPDX-License-Identifier: Apache-2.0
//
// One server: its copy of the parameters that it owns, and the program that applies what workers
// push. Every message is handled as a whole, one after another, in the order in which they come, or
// in that of a log. A session lasts from `open` until all ranks have said `end`. Any thread may
// call; the message of one worker comes from one thread at a time.
#pragma once

#include <chrono>
#include <condition_variable>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <orrery/sdk/driver.hpp>

#include "arrivals.h"
#include "cut.h"

namespace server {

// Numbers as they come with a push: those that the step was given, then its outputs.
using Facts = std::vector<double>;

class Reactor {
 public:
  // `heading`: of logs: what runs.
  Reactor(const Share& share, const Pace& pace, const std::string& heading,
          const orr_driver_host& host);

  // Begins a session: takes over the parameters as they are. [main thread, nobody else is here]
  void open(int64_t steps_done);
  // The gradients of a worker's step; `values`: its arrived states, range by range. `read`: the
  // version of the weights they were computed on.
  void push(int worker, int64_t clock, int64_t read, Facts facts, const std::byte* values);
  // The weights for a worker's next step (pull), or when all are done (end), and their version. -1:
  // not for a while; ask again, so that nobody takes either side for frozen.
  int64_t weights(Arrival::Kind kind, int worker, int64_t clock, std::byte* to);
  // The mean of what workers pushed when they had done `steps` steps, as soon as all have. On a
  // rank that only serves, which asks for more steps each time.
  Facts outputs_of(int64_t steps);
  // Ends all waits, here and later, with this error; `check` throws it.
  void stop(std::exception_ptr error);
  void check();
  // Updates of a session by their staleness: how many other updates came between read and push.
  std::map<int64_t, int64_t> take_staleness() { return std::exchange(staleness_, {}); }

  size_t value_bytes(int rank) const {
    return arrived_.front().bytes() * static_cast<size_t>(ranges_[static_cast<size_t>(rank)]);
  }
  size_t weight_bytes() const { return masters_.bytes(); }
  size_t facts() const { return static_cast<size_t>(host_.n_scalars + host_.n_outputs); }

 private:
  using Lock = std::unique_lock<std::mutex>;
  struct Kept {
    Facts facts;
    std::vector<std::byte> values;
  };
  struct Worker {
    int64_t steps = 0;  // pushed
    // On a rank that only serves: of pushes by the steps done, until it asks for later ones.
    std::map<int64_t, Facts> told;
    // With a bound: pushes that wait for the others', step s at s modulo bound + 1.
    std::vector<Kept> kept;
    bool ended = false;
  };
  bool works(int rank) const { return ranges_[static_cast<size_t>(rank)] > 0; }
  Worker& at(int rank) { return workers_[static_cast<size_t>(rank)]; }
  const Worker& at(int rank) const { return workers_[static_cast<size_t>(rank)]; }
  int slowest() const;  // of those that work
  template <class Ready>
  bool await(Lock& lock, Ready ready);
  bool its_turn(const Arrival& arrival) const;
  void handled(const Arrival& arrival);
  void apply_complete();
  void apply(const Facts& facts, int64_t clock);
  void put(int rank, const std::byte* values);
  void check_can_come() const;

  const Pace& pace_;
  const orr_driver_host& host_;
  const std::string program_;
  std::vector<int> ranges_;                 // by rank: pushes of a step, one for each range
  std::vector<orr::PackedStates> arrived_;  // by range of leaves
  orr::PackedStates params_, masters_;
  std::unique_ptr<ArrivalLog> log_;
  std::unique_ptr<Replay> replay_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Worker> workers_;  // by rank
  int64_t base_ = 0, version_ = 0;
  // Messages handled; those when last looked; looks without any since.
  int64_t events_ = 0, quiet_since_ = 0, quiet_ = 0;
  std::chrono::steady_clock::time_point ticked_;
  std::map<int64_t, int64_t> staleness_;
  std::exception_ptr error_;
};

}  // namespace server
