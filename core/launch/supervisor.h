// SPDX-License-Identifier: Apache-2.0
//
// What every launcher does with its children, be they ranks or remote shells: one loop over
// signals, their ends and their lines, and patience with the others once one has failed.
#pragma once

#include <poll.h>
#include <signal.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "launch/child.h"

namespace orrery {

class Supervisor {
 public:
  Supervisor() = default;
  virtual ~Supervisor();  // kills
  Supervisor(const Supervisor&) = delete;
  // Starts the children, sees them to their end and returns 0, or the code of the one that failed
  // by itself. One that is stopped for longer than the deadline and 1.2 s is killed, with
  // ORR_DEADLINE as its code: the others have named it by then, unless they are stopped, too, or
  // inside of a library that lets nobody ask. All have ended 2 s after the deadline.
  // SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGPIPE are passed on; a second SIGINT, SIGTERM or SIGPIPE
  // kills.
  // [main thread]
  int run();

 protected:
  virtual void start() = 0;  // fills children_
  // Before a child is killed because it has been stopped for too long: tells the others why.
  virtual void blame_stopped(size_t) {}
  // What else to wait for, and what is done after each wait.
  virtual void add_to(std::vector<pollfd>&) const {}
  virtual void look() {}
  virtual void pass_on(const Child& child, int signal) { kill(child.pid, signal); }
  // Of a child that has ended, told once: whether that is a failure.
  virtual bool ended_badly(size_t child) { return children_[child].code != 0; }
  // Says on stderr what went wrong, and returns the exit code for it.
  virtual int tell(size_t child) = 0;

  void take(int signal);
  void kill_all();
  // "was killed by signal 9 (Killed)", of a child that has ended.
  std::string how_it_ended(const Child& child) const;
  // " after signal 15 to the launcher" or "".
  std::string after_signal() const;
  // On stderr, whose reader may have gone.
  static void say(const std::string& line);

  std::vector<Child> children_;

 private:
  using Clock = std::chrono::steady_clock;
  void take_signals();
  void step();
  void read_signals();
  void reap();
  void ended(size_t child, int status);
  void enforce();
  void end_stopped();
  int next_look() const;
  void send_all(int signal);
  bool any_running() const;

  std::vector<size_t> failures_;  // in the order of their end, those we killed left out
  std::optional<Clock::time_point> deadline_;  // of the present patience
  int pressure_ = 0;                           // 0 patient, 1 SIGTERM sent, 2 SIGKILL sent
  int stop_signal_ = 0, stops_ = 0;
  int signal_fd_ = -1;
  sigset_t old_mask_{};
};

// The path of this very program, for children that are it again.
std::string own_program();

}  // namespace orrery
