// SPDX-License-Identifier: Apache-2.0
#include "launch/launch.h"

#include <signal.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <regex>

#include "base/error.h"
#include "base/machine.h"
#include "launch/affinity.h"
#include "launch/environment.h"
#include "launch/meeting_server.h"
#include "launch/restarts.h"
#include "launch/supervisor.h"

namespace orrery {
namespace {

// Beginnings of variables that other launchers set. Our ranks get only our own.
constexpr std::string_view foreign[] = {"OMPI_COMM_WORLD_",
                                        "PMIX_",
                                        "PMI_",
                                        "MPI_LOCALRANKID=",
                                        "MPI_LOCALNRANKS=",
                                        "SLURM_PROCID=",
                                        "SLURM_NTASKS=",
                                        "SLURM_STEP_ID=",
                                        "RANK=",
                                        "WORLD_SIZE=",
                                        "LOCAL_RANK=",
                                        "LOCAL_WORLD_SIZE=",
                                        "ORRERY_RANK=",
                                        "ORRERY_WORLD_SIZE=",
                                        "ORRERY_LOCAL_",
                                        "ORRERY_STORE=",
                                        "ORRERY_JOB=",
                                        "ORRERY_THREADS=",
                                        "ORRERY_SUPERVISOR="};

class Launcher : public Supervisor {
 public:
  Launcher(Front& front, const LaunchOptions& options, const std::string& job)
      : Supervisor(front),
        options_(options),
        job_(job),
        place_(fmt::format("orrery-{}-{}-{}", geteuid(), job, rank_of(0))),
        server_({place_}, options.ranks, "", MeetingServer::Ends::are_told) {}

 protected:
  void start() override;
  void add_to(std::vector<pollfd>& fds) const override {
    if (options_.part) fds.push_back({options_.part->control, POLLIN, 0});
  }
  void look() override {
    if (options_.part) read_control();
  }
  // Ranks that began after it was stopped have not missed it for a deadline yet.
  void blame_stopped(size_t child) override {
    server_.blame(Error(ORR_DEADLINE,
                        fmt::format("rank {} has not answered for {:g} s", children_[child].rank,
                                    static_cast<double>(deadline_ns()) * 1e-9)));
  }
  bool ended_badly(size_t child) override {
    server_.mark_ended(static_cast<int>(child));
    return Supervisor::ended_badly(child);
  }
  int tell(size_t child) override;

 private:
  std::vector<std::string> environment(int index, int threads) const;
  void read_control();
  int rank_of(int index) const { return index + (options_.part ? options_.part->first_rank : 0); }

  const LaunchOptions& options_;
  const std::string& job_;
  const std::string place_;
  MeetingServer server_;      // serves this host's ranks, by their index on the host
  std::string control_text_;  // received bytes of lines that are not complete
};

std::vector<std::string> Launcher::environment(int index, int threads) const {
  std::vector<std::string> env;
  for (char** e = environ; *e; ++e)
    if (!is_foreign(*e)) env.emplace_back(*e);
  const int world_size = options_.part ? options_.part->world_size : options_.ranks;
  for (const char* prefix : {"ORRERY_", ""}) {
    env.push_back(fmt::format("{}RANK={}", prefix, rank_of(index)));
    env.push_back(fmt::format("{}WORLD_SIZE={}", prefix, world_size));
    env.push_back(fmt::format("{}LOCAL_RANK={}", prefix, index));
    env.push_back(fmt::format("{}LOCAL_WORLD_SIZE={}", prefix, options_.ranks));
  }
  env.push_back(fmt::format("{}={}", wire::store_variable, place_));
  env.push_back(fmt::format("{}={}", wire::job_variable, job_));
  env.push_back(fmt::format("ORRERY_THREADS={}", threads));
  if (!std::getenv("OMP_NUM_THREADS")) env.push_back(fmt::format("OMP_NUM_THREADS={}", threads));
  return env;
}

void Launcher::start() {
  const std::vector<int> cpus = allowed_cpus();
  const int n = options_.ranks;
  for (int i = 0; i < n; ++i) {
    const int rank = rank_of(i);
    ChildSpec spec{
        rank, options_.program.empty() ? own_program() : options_.program, options_.argv, {}, {},
        {}};
    if (rank == 0 && !options_.part)
      spec.owns[0] = true, spec.owns[1] = !Outlet::may_stall(1),
      spec.owns[2] = !Outlet::may_stall(2);
    if (rank != 0) spec.prefix = fmt::format("[rank {}] ", rank);
    if (n > 1) spec.cpus = cpu_share(cpus, i, n);
    const int share = thread_share(cpus, i, n);
    spec.env = environment(i, options_.threads > 0 ? options_.threads : share);
    children_.push_back(start_child(spec, front_));
  }
}

// Reads signals from the control file and passes them on. At its end, the process that has started
// this launcher is gone: kills the ranks.
void Launcher::read_control() {
  char text[256];
  pollfd ready{options_.part->control, POLLIN, 0};
  if (poll(&ready, 1, 0) <= 0) return;
  const ssize_t n = read(options_.part->control, text, sizeof text);
  if (n <= 0) return kill_all();
  control_text_.append(text, static_cast<size_t>(n));
  for (size_t end; (end = control_text_.find('\n')) != std::string::npos;
       control_text_.erase(0, end + 1)) {
    int signal = 0;
    std::from_chars(control_text_.data(), control_text_.data() + end, signal);
    if (signal > 0 && signal < NSIG) take(signal, true);
  }
}

int Launcher::tell(size_t child) {
  server_.stop();
  const Child& c = children_[child];
  std::string text = fmt::format("orrery: rank {} ", c.rank);
  if (options_.part) text = fmt::format("{}{}on {} ", verdict_mark, text, options_.part->host);
  text += how_it_ended(c);
  const std::string& reported = server_.reported(static_cast<int>(child));
  say(reported.empty() ? text : fmt::format("{}: {}", text, reported));
  return c.code;
}

bool is_job_name(const std::string& name) {
  return std::regex_match(name, std::regex("job-[0-9]+-[0-9a-f]{16}"));
}

}  // namespace

bool is_foreign(std::string_view entry) {
  return std::any_of(std::begin(foreign), std::end(foreign),
                     [&](std::string_view f) { return entry.starts_with(f); });
}

void remove_leavings(const std::string& job) {
  std::error_code ignored;  // files that this user may not remove stay
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm", ignored))
    if (entry.path().filename().string().find(job) != std::string::npos)
      std::filesystem::remove_all(entry.path(), ignored);
}

std::string new_job_name() {
  uint64_t number = 0;
  if (getrandom(&number, sizeof number, 0) != sizeof number)
    number = static_cast<uint64_t>(getpid());
  return fmt::format("job-{}-{:016x}", getpid(), number);
}

int launch(const LaunchOptions& options) {
  if (options.ranks < 1 || options.ranks > wire::max_ranks)
    fail(ORR_INVALID, "-n {}: a job has 1 to {} ranks", options.ranks, wire::max_ranks);
  const std::string name = new_job_name();
  Front front;
  Restarts restarts(options.restarts);
  for (int start = 1;; ++start) {
    if (!options.part) set_job_start({name, start});
    const std::string job = options.part ? options.part->job : new_job_name();
    if (!is_job_name(job))
      fail(ORR_INVALID, "the orders name the job '{}': not a name that orrery gives", job);
    Launcher launcher(front, options, job);
    const int code = launcher.run();
    remove_leavings(job);
    if (restarts.left() == 0 || !launcher.has_lost_ranks(code)) return front.finish(code);
    if (const int signal = restarts.use_one(launcher.lasted(), front))
      return front.finish(128 + signal);
  }
}

}  // namespace orrery
