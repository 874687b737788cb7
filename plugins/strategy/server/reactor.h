// SPDX-License-Identifier: Apache-2.0
//
// One server: it has its own copy of the parameters that it owns, and runs the program that applies
// what workers push. It handles one message after another, in the order of their arrival or in that
// of a log. A session lasts from `open` until all ranks have sent `end`. Any thread may call, but
// for each worker only one at a time.
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

// The numbers that come with a push: first the scalars that the worker's step was given, then the
// step's outputs.
using Facts = std::vector<double>;

class Reactor {
 public:
  // `heading` describes the run, for the log of arrivals.
  Reactor(const Share& share, const Pace& pace, const std::string& heading,
          const orr_driver_host& host);

  // Begins a session, with the parameters as they are now. [main thread, no other thread calls]
  void open(int64_t steps_done);
  // Takes the gradients of a worker's step. `values`: for each range of the worker's leaves, what
  // belongs into the `arrived` states. `read`: the version of the weights that the step used.
  void push(int worker, int64_t clock, int64_t read, Facts facts, const std::byte* values);
  // Writes the weights for a worker's next step (kind pull), or the last ones when all workers have
  // ended (kind end), and returns their version. -1: they are not ready after a part of the
  // deadline, and the worker must ask again. So messages keep coming, and no rank takes another for
  // frozen.
  int64_t weights(Arrival::Kind kind, int worker, int64_t clock, std::byte* to);
  // Waits until all workers have done `steps` steps, and returns the mean of the outputs that they
  // pushed then. For a dedicated server, which must ask for more steps each time.
  Facts outputs_of(int64_t steps);
  // Makes all waits, now and later, throw this error. `check` throws it, too.
  void stop(std::exception_ptr error);
  void check();
  // Returns how many pushes of the session had which staleness, and forgets them. Staleness is the
  // number of other updates between reading the weights and the push.
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
    int64_t steps = 0;  // that the worker has pushed
    // On a dedicated server: by the number of steps done, the numbers of that push, until
    // outputs_of is asked for later ones.
    std::map<int64_t, Facts> told;
    // With a bound: pushes that wait for those of other workers. Step s is at s modulo (bound + 1).
    std::vector<Kept> kept;
    bool ended = false;
  };
  bool works(int rank) const { return ranges_[static_cast<size_t>(rank)] > 0; }
  Worker& at(int rank) { return workers_[static_cast<size_t>(rank)]; }
  const Worker& at(int rank) const { return workers_[static_cast<size_t>(rank)]; }
  int slowest() const;  // the rank with the fewest steps among those that work
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
  std::vector<int> ranges_;                 // by rank: how many ranges of leaves it pushes
  std::vector<orr::PackedStates> arrived_;  // by range of leaves: the states for its values
  orr::PackedStates params_, masters_;
  std::unique_ptr<ArrivalLog> log_;
  std::unique_ptr<Replay> replay_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Worker> workers_;  // by rank
  int64_t base_ = 0, version_ = 0;
  // For the deadline (await): messages handled so far, how many those were when a message was last
  // noticed, and the parts of the deadline that have passed since.
  int64_t events_ = 0, quiet_since_ = 0, quiet_ = 0;
  std::chrono::steady_clock::time_point ticked_;
  std::map<int64_t, int64_t> staleness_;
  std::exception_ptr error_;
};

}  // namespace server
