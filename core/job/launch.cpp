// SPDX-License-Identifier: Apache-2.0
//
// The launcher's one loop: signals, children, their messages and their lines, through one poll.
#include "job/launch.h"

#include <poll.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "base/machine.h"
#include "job/child.h"
#include "job/environment.h"
#include "job/share.h"
#include "job/store_server.h"

namespace orrery {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// What launchers leave in the environment; the ranks are ours and see our variables only.
constexpr std::string_view foreign[] = {"OMPI_COMM_WORLD_", "PMIX_", "PMI_", "MPI_LOCALRANKID=",
                                        "MPI_LOCALNRANKS=", "SLURM_PROCID=", "SLURM_NTASKS=",
                                        "SLURM_STEP_ID=", "RANK=", "WORLD_SIZE=", "LOCAL_RANK=",
                                        "LOCAL_WORLD_SIZE=", "ORRERY_RANK=", "ORRERY_WORLD_SIZE=",
                                        "ORRERY_LOCAL_", "ORRERY_STORE_FD=", "ORRERY_BOARD_FD=",
                                        "ORRERY_JOB=", "ORRERY_THREADS="};

std::string own_program() {
  char path[PATH_MAX];
  const ssize_t n = readlink("/proc/self/exe", path, sizeof path);
  if (n <= 0) fail(ORR_FAILED, "launcher: cannot find its own program in /proc/self/exe");
  return std::string(path, static_cast<size_t>(n));
}

std::string new_job_name() {
  uint64_t word = 0;
  if (getrandom(&word, sizeof word, 0) != sizeof word) word = static_cast<uint64_t>(getpid());
  return fmt::format("job-{}-{:016x}", getpid(), word);
}

// Ranks end by their own error, by the loss of a peer (75) or by a silent peer (124): the first kind
// is the cause, the others follow from it.
int follows(int code) { return code == ORR_RETRY ? 2 : code == ORR_DEADLINE ? 1 : 0; }

class Launcher {
 public:
  explicit Launcher(const LaunchOptions& options) : options_(options), server_(options.ranks) {
    for (int r = 0; r < options.ranks; ++r) server_.invite(r);
  }
  ~Launcher();
  int run();

 private:
  void take_signals();
  void start();
  std::vector<std::string> environment(int rank, int threads) const;
  void step();
  void read_signals();
  void reap();
  void ended(Child& child, int status);
  void enforce();
  void send_all(int signal);
  int verdict() const;
  bool any_running() const;

  const LaunchOptions& options_;
  StoreServer server_;
  std::vector<Child> children_;
  std::vector<bool> talks_;
  std::vector<int> failures_;  // ranks in the order of their end, those we killed left out
  std::optional<Clock::time_point> deadline_;  // of the present patience
  int pressure_ = 0;                           // 0 patient, 1 SIGTERM sent, 2 SIGKILL sent
  int stop_signal_ = 0, stops_ = 0;
  int signal_fd_ = -1;
  sigset_t old_mask_{};
};

Launcher::~Launcher() {
  send_all(SIGKILL);
  for (Child& c : children_)
    if (c.running) waitpid(c.pid, nullptr, 0);
  if (signal_fd_ < 0) return;
  close(signal_fd_);
  sigprocmask(SIG_SETMASK, &old_mask_, nullptr);
}

void Launcher::take_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (int s : {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGUSR1}) sigaddset(&set, s);
  sigprocmask(SIG_BLOCK, &set, &old_mask_);
  signal_fd_ = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
  if (signal_fd_ < 0) fail(ORR_FAILED, "launcher: no signalfd: {}", std::strerror(errno));
}

std::vector<std::string> Launcher::environment(int rank, int threads) const {
  std::vector<std::string> env;
  for (char** e = environ; *e; ++e) {
    const std::string_view entry(*e);
    const bool drop = std::any_of(std::begin(foreign), std::end(foreign),
                                  [&](std::string_view f) { return entry.starts_with(f); });
    if (!drop) env.emplace_back(entry);
  }
  for (const char* prefix : {"ORRERY_", ""}) {
    env.push_back(fmt::format("{}RANK={}", prefix, rank));
    env.push_back(fmt::format("{}WORLD_SIZE={}", prefix, options_.ranks));
    env.push_back(fmt::format("{}LOCAL_RANK={}", prefix, rank));
    env.push_back(fmt::format("{}LOCAL_WORLD_SIZE={}", prefix, options_.ranks));
  }
  env.push_back(fmt::format("{}={}", wire::store_variable, server_.rank_end(rank)));
  env.push_back(fmt::format("{}={}", wire::board_variable, server_.board()));
  env.push_back(fmt::format("ORRERY_THREADS={}", threads));
  if (!std::getenv("OMP_NUM_THREADS")) env.push_back(fmt::format("OMP_NUM_THREADS={}", threads));
  return env;
}

void Launcher::start() {
  const std::vector<int> cpus = allowed_cpus();
  const int n = options_.ranks;
  const std::string job = fmt::format("{}={}", wire::job_variable, new_job_name());
  for (int r = 0; r < n; ++r) {
    ChildSpec spec{r, options_.program.empty() ? own_program() : options_.program, options_.argv, {}, {},
                   {server_.rank_end(r), server_.board()}, r == 0};
    if (n > 1) spec.cpus = cpu_share(cpus, r, n);
    const int share = thread_share(cpus, r, n);
    spec.env = environment(r, options_.threads > 0 ? options_.threads : share);
    spec.env.push_back(job);
    children_.push_back(start_child(spec));
  }
  talks_.assign(n, true);
  server_.started();
}

int Launcher::run() {
  take_signals();
  start();
  while (any_running()) step();
  for (Child& c : children_) {
    server_.serve(c.rank);
    for (LinePrefixer& o : c.output) o.finish();
  }
  return verdict();
}

bool Launcher::any_running() const {
  return std::any_of(children_.begin(), children_.end(), [](const Child& c) { return c.running; });
}

void Launcher::step() {
  std::vector<pollfd> fds{{signal_fd_, POLLIN, 0}};
  for (Child& c : children_) {
    if (talks_[c.rank]) fds.push_back({server_.server_end(c.rank), POLLIN, 0});
    for (LinePrefixer& o : c.output)
      if (c.running && !o.at_end()) fds.push_back({o.fd(), POLLIN, 0});
  }
  int timeout = -1;
  if (deadline_) {
    const auto left = std::chrono::duration_cast<milliseconds>(*deadline_ - Clock::now()).count();
    timeout = static_cast<int>(std::clamp<int64_t>(left + 1, 0, 1000));
  }
  poll(fds.data(), fds.size(), timeout);
  for (Child& c : children_) {
    if (talks_[c.rank]) talks_[c.rank] = server_.serve(c.rank);
    for (LinePrefixer& o : c.output) o.pump();
  }
  read_signals();
  enforce();
}

void Launcher::read_signals() {
  signalfd_siginfo info;
  while (read(signal_fd_, &info, sizeof info) == sizeof info) {
    const int s = static_cast<int>(info.ssi_signo);
    if (s == SIGCHLD) continue;
    if (s != SIGUSR1) stop_signal_ = s;
    if (s != SIGUSR1 && ++stops_ > 1) s == SIGHUP ? send_all(SIGHUP) : send_all(SIGKILL);
    else send_all(s);
  }
  reap();
}

void Launcher::reap() {
  for (Child& c : children_) {
    int status = 0;
    if (c.running && waitpid(c.pid, &status, WNOHANG) == c.pid) ended(c, status);
  }
}

// Peers learn of it at once; they get the deadline and 2 s to say their own error.
void Launcher::ended(Child& c, int status) {
  c.running = false;
  c.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  c.code = c.signal ? 128 + c.signal : WEXITSTATUS(status);
  server_.mark_ended(c.rank);
  if (c.code == 0 || pressure_ > 0) return;
  failures_.push_back(c.rank);
  if (!deadline_) deadline_ = Clock::now() + nanoseconds(deadline_ns()) + milliseconds(2000);
}

void Launcher::enforce() {
  if (!deadline_ || Clock::now() < *deadline_ || pressure_ == 2) return;
  send_all(pressure_ == 0 ? SIGTERM : SIGKILL);
  ++pressure_;
  deadline_ = Clock::now() + milliseconds(1000);
}

void Launcher::send_all(int signal) {
  for (const Child& c : children_)
    if (c.running) kill(c.pid, signal);
}

int Launcher::verdict() const {
  if (failures_.empty()) return 0;
  const int first = *std::min_element(failures_.begin(), failures_.end(), [&](int a, int b) {
    return follows(children_[a].code) < follows(children_[b].code);
  });
  const Child& c = children_[first];
  const std::string& words = server_.last_words(first);
  std::string text = fmt::format("orrery: rank {} ", first);
  if (c.signal)
    text += fmt::format("was killed by signal {} ({})", c.signal, strsignal(c.signal));
  else
    text += fmt::format("failed with exit code {}", c.code);
  if (stop_signal_) text += fmt::format(" after signal {} to the launcher", stop_signal_);
  if (!words.empty()) text += ": " + words;
  fmt::print(stderr, "{}\n", text);
  return c.code;
}

}  // namespace

int launch(const LaunchOptions& options) {
  if (options.ranks < 1 || options.ranks > wire::max_ranks)
    fail(ORR_INVALID, "-n {}: a job has 1 to {} ranks", options.ranks, wire::max_ranks);
  return Launcher(options).run();
}

}  // namespace orrery
