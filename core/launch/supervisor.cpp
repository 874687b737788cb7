// SPDX-License-Identifier: Apache-2.0
#include "launch/supervisor.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>

#include "base/error.h"
#include "launch/environment.h"

namespace orrery {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// Ranks failures by what caused them: an error of the child's own (0) causes silent peers (1,
// ORR_DEADLINE) and lost peers (2, ORR_RETRY).
int follows(int code) { return code == ORR_RETRY ? 2 : code == ORR_DEADLINE ? 1 : 0; }

}  // namespace

Supervisor::~Supervisor() {
  send_all(SIGKILL);
  for (Child& c : children_)
    if (c.running) waitpid(c.pid, nullptr, 0);
}

int Supervisor::run() {
  begun_ = failed_at_ = Clock::now();
  start();
  while (any_running()) step();
  look();
  read_signals();
  for (Child& c : children_)
    for (LinePrefixer& o : c.output) o.finish();
  front_.flush();
  if (failures_.empty()) return 0;
  const size_t first = *std::min_element(
      failures_.begin(), failures_.end(),
      [&](size_t a, size_t b) { return follows(children_[a].code) < follows(children_[b].code); });
  return tell(first);
}

bool Supervisor::any_running() const {
  return std::any_of(children_.begin(), children_.end(), [](const Child& c) { return c.running; });
}

void Supervisor::step() {
  front_.hurry(front_.signals.told() || deadline_);
  std::vector<pollfd> fds;
  front_.add_to(fds);
  add_to(fds);
  for (Child& c : children_)
    for (LinePrefixer& o : c.output)
      if (c.running && o.is_open()) fds.push_back({o.fd(), POLLIN, 0});
  poll(fds.data(), fds.size(), next_look());
  look();
  for (Child& c : children_)
    for (LinePrefixer& o : c.output)
      if (o.is_open()) o.pump();
  front_.flush();
  read_signals();
  enforce();
  end_stopped();
}

// Milliseconds until something must be done even if no event comes; -1: nothing must.
int Supervisor::next_look() const {
  for (const Child& c : children_)
    if (c.running && !c.stopped.empty()) return 200;
  for (const Child& c : children_)
    for (const LinePrefixer& o : c.output)
      if (c.running && o.holds() && o.is_open()) return LinePrefixer::holding.count();
  if (!deadline_) return look_within_;
  const auto left = std::chrono::duration_cast<milliseconds>(*deadline_ - Clock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left + 1, 0, 1000));
}

void Supervisor::read_signals() {
  while (const int signal = front_.signals.next()) take(signal, false);
  reap();
}

bool Supervisor::has_lost_ranks(int code) const {
  return !front_.signals.told() && (code == ORR_RETRY || code == ORR_DEADLINE || code > 128);
}

void Supervisor::take(int signal, bool is_copy) {
  front_.signals.tell();
  if (signal != SIGUSR1) stop_signal_ = signal;
  const StopCounter::Kind kind = stops_.take(signal, is_copy);
  if (kind == StopCounter::repeated) return;
  send_all(kind == StopCounter::second && signal != SIGHUP ? SIGKILL : signal);
}

void Supervisor::reap() {
  for (size_t i = 0; i < children_.size(); ++i) {
    Child& c = children_[i];
    int status = 0;
    while (c.running && waitpid(c.pid, &status, WNOHANG | WUNTRACED | WCONTINUED) == c.pid) {
      if (WIFSTOPPED(status)) {
        c.stopped = fmt::format("signal {} ({})", WSTOPSIG(status), strsignal(WSTOPSIG(status)));
        c.stopped_at = Clock::now();
      } else if (WIFCONTINUED(status)) {
        c.stopped.clear();
      } else {
        ended(i, status);
      }
    }
  }
}

void Supervisor::end_stopped() {
  const auto patience = nanoseconds(deadline_ns()) + milliseconds(2000);
  for (size_t i = 0; i < children_.size(); ++i) {
    const Child& c = children_[i];
    if (!c.running || c.stopped.empty() || Clock::now() - c.stopped_at <= patience || pressure_)
      continue;
    blame_stopped(i);
    kill(c.pid, SIGKILL);
  }
}

// Handles the end of a child. After a failure the others, which notice it by themselves, get the
// deadline and 2 s to end with an error of their own.
void Supervisor::ended(size_t child, int status) {
  Child& c = children_[child];
  c.running = false;
  c.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  if (Clock::now() - c.stopped_at < nanoseconds(deadline_ns())) c.stopped.clear();
  if (!c.stopped.empty()) c.signal = 0;  // we killed it because it was stopped
  c.code = !c.stopped.empty() ? int{ORR_DEADLINE} : c.signal ? 128 + c.signal : WEXITSTATUS(status);
  if (!ended_badly(child) || pressure_ > 0) return;
  if (failures_.empty()) failed_at_ = Clock::now();
  failures_.push_back(child);
  if (!deadline_) deadline_ = Clock::now() + nanoseconds(deadline_ns()) + milliseconds(2000);
}

void Supervisor::enforce() {
  if (!deadline_ || Clock::now() < *deadline_ || pressure_ == 2) return;
  send_all(pressure_ == 0 ? SIGTERM : SIGKILL);
  ++pressure_;
  deadline_ = Clock::now() + milliseconds(1000);
}

void Supervisor::send_all(int signal) {
  if (signal == SIGKILL) return kill_all();
  for (const Child& c : children_)
    if (c.running) pass_on(c, signal);
}

void Supervisor::kill_all() {
  for (const Child& c : children_)
    if (c.running) kill(c.pid, SIGKILL);
}

std::string Supervisor::how_it_ended(const Child& c) const {
  const std::string how =
      !c.stopped.empty() ? fmt::format("was stopped by {} for longer than the deadline", c.stopped)
      : c.signal ? fmt::format("was killed by signal {} ({})", c.signal, strsignal(c.signal))
                 : fmt::format("failed with exit code {}", c.code);
  return how + after_signal();
}

std::string Supervisor::after_signal() const {
  return stop_signal_ ? fmt::format(" after signal {} to the launcher", stop_signal_) : "";
}

std::string own_program() {
  char path[PATH_MAX];
  const ssize_t n = readlink("/proc/self/exe", path, sizeof path);
  if (n <= 0) fail(ORR_FAILED, "launcher: cannot find its own program in /proc/self/exe");
  return std::string(path, static_cast<size_t>(n));
}

}  // namespace orrery
