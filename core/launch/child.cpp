// SPDX-License-Identifier: Apache-2.0
#include "launch/child.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/error.h"
#include "launch/stop_signal.h"

namespace orrery {
namespace {

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (const std::string& t : texts) out.push_back(const_cast<char*>(t.c_str()));
  out.push_back(nullptr);
  return out;
}

// The environment, in which the child finds out who supervises it (stop_signal.h).
std::vector<std::string> with_supervisor(std::vector<std::string> env) {
  const std::string name = std::string(supervisor_variable) + "=";
  std::erase_if(env, [&](const std::string& entry) { return entry.starts_with(name); });
  env.push_back(name + std::to_string(getpid()));
  return env;
}

struct Prepared {
  std::vector<char*> argv, env;
  cpu_set_t cpus;
  int out, err, null;
  pid_t parent;
};

// Runs between fork and exec: only async-signal-safe calls are allowed.
[[noreturn]] void become(const ChildSpec& spec, const Prepared& p) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != p.parent) _exit(1);
  // A process group of its own: the terminal's Ctrl-C then reaches only the launcher, which passes
  // it on once. A program that asks at the terminal, as ssh does for passwords, would be stopped in
  // the background; without a terminal it fails instead.
  spec.input >= 0 ? setsid() : setpgid(0, 0);
  // A stop that comes while a rank starts waits until the rank can note it (watch_user_signal).
  sigset_t blocked;
  sigemptyset(&blocked);
  if (spec.input < 0) sigaddset(&blocked, SIGUSR1);
  sigprocmask(SIG_SETMASK, &blocked, nullptr);
  if (!spec.cpus.empty()) sched_setaffinity(0, sizeof p.cpus, &p.cpus);
  if (!spec.owns[0]) dup2(spec.input >= 0 ? spec.input : p.null, 0);
  if (!spec.owns[1]) dup2(p.out, 1);
  if (!spec.owns[2]) dup2(p.err, 2);
  execvpe(spec.program.c_str(), p.argv.data(), p.env.data());
  dprintf(2, "orrery: cannot execute %s: %s\n", spec.program.c_str(), std::strerror(errno));
  _exit(127);
}

}  // namespace

void LinePrefixer::pump(bool all) {
  char buffer[4096];
  while (!at_end_ && (all || to_->has_room())) {
    const ssize_t n = read(from_, buffer, sizeof buffer);
    at_end_ = n == 0;
    if (n <= 0) break;
    came_ = std::chrono::steady_clock::now();
    pending_.append(buffer, static_cast<size_t>(n));
    write_lines(false);
    to_->flush();
  }
  if (holds() && std::chrono::steady_clock::now() - came_ >= holding && to_->has_room())
    write_lines(true);
}

void LinePrefixer::write_lines(bool all) {
  size_t begin = 0;
  std::string out;
  for (size_t end; (end = pending_.find('\n', begin)) != std::string::npos; begin = end + 1)
    out += line_out(pending_.substr(begin, end - begin));
  pending_.erase(0, begin);
  if (all && !pending_.empty()) out += is_plain() ? pending_ : line_out(pending_);
  if (all) pending_.clear();
  to_->add(out);
}

std::string LinePrefixer::line_out(std::string line) {
  if (!mark_) return prefix_ + line + "\n";
  if (const size_t at = line.find(mark_); at != std::string::npos) {
    kept_ = line.substr(at + 1);
    line.erase(at);
    if (line.empty()) return "";
  }
  if (const size_t end = line.find_last_not_of(" \t\r"); end != std::string::npos)
    last_line_ = line.substr(0, end + 1);
  return prefix_ + line + "\n";
}

void LinePrefixer::finish() {
  pump(true);
  write_lines(true);
  close(from_);
}

Child start_child(const ChildSpec& spec, Front& front) {
  const std::vector<std::string> env = with_supervisor(spec.env);
  Prepared p{pointers(spec.argv), pointers(env), {}, -1, -1, -1, getpid()};
  CPU_ZERO(&p.cpus);
  for (int cpu : spec.cpus) CPU_SET(cpu, &p.cpus);
  int out[2] = {-1, -1}, err[2] = {-1, -1};
  Child child{spec.rank, 0, {}};
  if (!spec.owns[0]) p.null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if ((!spec.owns[0] && p.null < 0) || (!spec.owns[1] && pipe2(out, O_CLOEXEC)) ||
      (!spec.owns[2] && pipe2(err, O_CLOEXEC)))
    fail(ORR_FAILED, "launcher: no pipe for rank {}: {} (see ulimit -n)", spec.rank,
         std::strerror(errno));
  p.out = out[1];
  p.err = err[1];
  for (int fd : {out[0], err[0]}) {
    if (fd < 0) continue;
    fcntl(fd, F_SETFL, O_NONBLOCK);
    const bool errors = fd == err[0];
    child.output.emplace_back(fd, errors ? front.err : front.out, spec.prefix,
                              errors ? spec.mark : '\0');
  }
  child.pid = fork();
  if (child.pid == 0) become(spec, p);
  const int error = errno;
  for (int fd : {p.null, p.out, p.err})
    if (fd >= 0) close(fd);
  if (child.pid < 0)
    fail(ORR_FAILED, "launcher: cannot start rank {}: {}", spec.rank, std::strerror(error));
  return child;
}

}  // namespace orrery
