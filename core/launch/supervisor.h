// SPDX-License-Identifier: Apache-2.0
//
// Supervises the children of a launcher, which are ranks or remote shells, in one loop: passes on
// signals and lines, and once a child has failed gives the others limited time to end.
#pragma once

#include <poll.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "launch/child.h"
#include "launch/front.h"
#include "launch/stop_signal.h"

namespace orrery {

class Supervisor {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Supervisor(Front& front) : front_(front) {}
  virtual ~Supervisor();  // kills the children
  Supervisor(const Supervisor&) = delete;
  // Starts the children and returns when all have ended: 0, or the code of the one that failed by
  // itself. A child that is stopped for longer than the deadline and 2 s is killed, with
  // ORR_DEADLINE as its code. The other ranks have named it by then, unless they are stopped too,
  // or in a library that does not return. After a failure, children that run longer than the
  // deadline and 2 s are ended. SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGPIPE are passed on once,
  // however often they come within a second (StopCounter); a second one kills, except SIGHUP.
  // [main thread]
  int run();
  // Whether a job that has ended with `code` has lost a rank or a host, and was not told to end: it
  // may succeed if it starts again.
  bool has_lost_ranks(int code) const;
  // How long it ran until the first child failed.
  Clock::duration lasted() const { return failed_at_ - begun_; }

 protected:
  virtual void start() = 0;  // fills children_
  // Is called before a child is killed that has been stopped for too long: tells the others why.
  virtual void blame_stopped(size_t) {}
  // Adds descriptors to wait for.
  virtual void add_to(std::vector<pollfd>&) const {}
  // Is called after each wait.
  virtual void look() {}
  virtual void pass_on(const Child& child, int signal) { kill(child.pid, signal); }
  // Is called once for each child that has ended: whether that is a failure.
  virtual bool ended_badly(size_t child) { return children_[child].code != 0; }
  // Prints on stderr how this child has failed, and returns the exit code for it.
  virtual int tell(size_t child) = 0;

  void say(const std::string& line) { front_.say(line); }
  // Passes on a signal. `is_copy`: it comes from a launcher that supervises this one.
  void take(int signal, bool is_copy);
  void kill_all();
  // "was killed by signal 9 (Killed)", for a child that has ended.
  std::string how_it_ended(const Child& child) const;
  // " after signal 15 to the launcher" or "".
  std::string after_signal() const;

  Front& front_;
  std::vector<Child> children_;
  // Milliseconds until `look` is called even if no event comes; -1: for ever.
  int look_within_ = -1;

 private:
  void step();
  void read_signals();
  void reap();
  void ended(size_t child, int status);
  void enforce();
  void end_stopped();
  int next_look() const;
  void send_all(int signal);
  bool any_running() const;

  Clock::time_point begun_, failed_at_;
  std::vector<size_t> failures_;  // in the order of their end, without those that we ended
  std::optional<Clock::time_point> deadline_;  // when `pressure_` rises; set after a failure
  int pressure_ = 0;                           // 0: waits, 1: SIGTERM was sent, 2: SIGKILL was sent
  int stop_signal_ = 0;
  StopCounter stops_;
};

// The path of the running program, for children that run it again.
std::string own_program();

}  // namespace orrery
