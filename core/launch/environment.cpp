// SPDX-License-Identifier: Apache-2.0
#include "launch/environment.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <sstream>
#include <string_view>

#include "base/error.h"
#include "launch/ancestor.h"
#include "launch/boot.h"
#include "launch/guard.h"

namespace orrery {
namespace {

// The variables of one launcher. If `step` is given, the others count only if it is set: a Slurm
// batch script has the variables of a task without being one.
struct Source {
  const char* name;
  const char *rank, *size, *local_rank, *local_size;
  const char* step;
  bool yields;  // ignored if another launcher's are set: mpirun in a Slurm allocation has both
  bool mute;    // see World::launcher_is_mute
  const char* job[4];  // these together name the job; those that are not set are left out
};

constexpr const char* start_variable = "ORRERY_START";

constexpr Source sources[] = {
    {"orrery",
     "ORRERY_RANK",
     "ORRERY_WORLD_SIZE",
     "ORRERY_LOCAL_RANK",
     "ORRERY_LOCAL_WORLD_SIZE",
     nullptr,
     false,
     false,
     {"ORRERY_JOB"}},
    {"torchrun",
     "RANK",
     "WORLD_SIZE",
     "LOCAL_RANK",
     "LOCAL_WORLD_SIZE",
     nullptr,
     false,
     false,
     {"MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"}},
    {"Open MPI",
     "OMPI_COMM_WORLD_RANK",
     "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE",
     nullptr,
     false,
     true,
     {"PMIX_NAMESPACE"}},
    {"hydra",
     "PMI_RANK",
     "PMI_SIZE",
     "MPI_LOCALRANKID",
     "MPI_LOCALNRANKS",
     nullptr,
     false,
     true,
     {}},
    {"Slurm",
     "SLURM_PROCID",
     "SLURM_NTASKS",
     "SLURM_LOCALID",
     nullptr,
     "SLURM_STEP_ID",
     true,
     false,
     {"SLURM_JOB_ID", "SLURM_STEP_ID"}},
};

int number(const char* name, const char* text) {
  int value = 0;
  const char* end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, value);
  if (error != std::errc() || stop != end || value < 0)
    fail(ORR_INVALID, "{}='{}' is not a number of ranks: unset it or start with 'orrery run -n N'",
         name, text);
  return value;
}

// Slurm gives the number of tasks of each node as "2(x3),1". The first number is used, which is
// right if all nodes have equally many.
int slurm_local_size(const GetEnv& env, int size) {
  const char* nodes = env("SLURM_STEP_NUM_NODES");
  const int n = nodes ? number("SLURM_STEP_NUM_NODES", nodes) : 1;
  const char* tasks = env("SLURM_STEP_TASKS_PER_NODE");
  if (n <= 1 || !tasks) return size;
  return number("SLURM_STEP_TASKS_PER_NODE",
                std::string(tasks, std::strspn(tasks, "0123456789")).c_str());
}

// The first host of a list such as "n[07-12,20],m3".
std::string first_host(const std::string& nodes) {
  const size_t bracket = nodes.find('['), end = nodes.find(',');
  if (bracket == std::string::npos || end < bracket) return nodes.substr(0, end);
  const size_t stop = nodes.find_first_of("-,]", bracket);
  const size_t close = nodes.find(']', bracket),
               after = std::min(nodes.find(',', close), nodes.size());
  if (close == std::string::npos) return "";
  return nodes.substr(0, bracket) + nodes.substr(bracket + 1, stop - bracket - 1) +
         nodes.substr(close + 1, after - close - 1);
}

// Finds rank 0's address: in MASTER_ADDR and MASTER_PORT, which any launcher may pass on, or else
// by Slurm's host of the first task, with a port that is computed from the job's number.
void find_rank_0(World& w, const GetEnv& env) {
  const char *address = env("MASTER_ADDR"), *port = env("MASTER_PORT");
  if (address && port) {
    w.address = address;
    w.port = port;
    return;
  }
  const char *nodes = env("SLURM_STEP_NODELIST"), *job = env("SLURM_JOB_ID");
  if (w.source != std::string_view("Slurm") || !nodes || !job) return;
  w.address = first_host(nodes);
  w.port = std::to_string(15000 + number("SLURM_JOB_ID", job) % 10000);
}

// Hydra gives no name of the job. But its proxy is the parent of all ranks of a host, perhaps with
// a shell between: it is the nearest ancestor that is no rank itself.
std::string common_parent(const char* rank_variable) {
  return fmt::format("process {}", ancestor_without({rank_variable}));
}

std::string job_of(const Source& s, const GetEnv& env) {
  std::string name;
  for (const char* variable : s.job)
    if (const char* part = variable ? env(variable) : nullptr) name += fmt::format(" {}", part);
  if (name.empty() && !s.job[0]) name = " " + common_parent(s.rank);
  return name.empty() ? "" : s.name + name;
}

std::optional<World> read(const Source& s, const GetEnv& env) {
  const char *rank = env(s.rank), *size = env(s.size);
  if (s.step && !env(s.step)) return std::nullopt;
  if (!rank && !size) return std::nullopt;
  // srun --mpi=pmi2 sets rank and size as PMI does, and the rest in its own variables.
  if (std::string_view(s.rank) == "PMI_RANK" && !env(s.local_rank) && env("SLURM_STEP_ID"))
    return std::nullopt;
  if (!rank || !size)
    fail(ORR_INVALID,
         "{} is set but {} is not: set both, or neither and start with 'orrery run -n N'",
         rank ? s.rank : s.size, rank ? s.size : s.rank);
  World w;
  w.rank = number(s.rank, rank);
  w.size = number(s.size, size);
  if (w.rank >= w.size)
    fail(ORR_INVALID, "{}={} is outside of {}={}: ranks count from 0", s.rank, w.rank, s.size,
         w.size);
  const char* local_rank = env(s.local_rank);
  const char* local_size = s.local_size ? env(s.local_size) : nullptr;
  w.local_rank = local_rank ? number(s.local_rank, local_rank) : w.rank;
  w.local_size = local_size     ? number(s.local_size, local_size)
                 : s.local_size ? w.size
                                : slurm_local_size(env, w.size);
  w.source = s.name;
  w.job = job_of(s, env);
  w.launcher_is_mute = s.mute;
  find_rank_0(w, env);
  return w;
}

}  // namespace

World detect(const GetEnv& env) {
  std::optional<World> found;
  const Source* by = nullptr;
  for (const Source& s : sources) {
    if (found && s.yields) continue;
    const std::optional<World> w = read(s, env);
    if (!w) continue;
    if (found && (found->rank != w->rank || found->size != w->size))
      fail(ORR_INVALID,
           "two launchers disagree: {}={} of {}={} ({}), but {}={} of {}={} ({}): unset one pair",
           by->rank, found->rank, by->size, found->size, by->name, s.rank, w->rank, s.size, w->size,
           s.name);
    if (found) continue;
    found = w;
    by = &s;
  }
  return found.value_or(World{});
}

World detect() {
  const World w = detect([](const char* name) -> const char* { return std::getenv(name); });
  return is_guard(w) ? w : with_boot(w);
}

JobStart job_start() {
  const char* given = std::getenv(start_variable);
  if (!given) return {};
  const std::string text = given;
  const size_t colon = text.rfind(':');
  JobStart found{text.substr(0, colon), 0};
  if (colon == text.npos ||
      std::from_chars(given + colon + 1, given + text.size(), found.start).ec != std::errc())
    fail(ORR_INVALID, "{}={}: expected NAME:NUMBER, as the launcher sets it", start_variable, text);
  return found;
}

void set_job_start(const JobStart& start) {
  ::setenv(start_variable, fmt::format("{}:{}", start.job, start.start).c_str(), 1);
}

int64_t deadline_ns() {
  const char* text = std::getenv("ORRERY_DEADLINE");
  if (!text) return int64_t{30} * 1000000000;
  char* end = nullptr;
  const double seconds = std::strtod(text, &end);
  if (end == text || *end || !(seconds > 0) || !std::isfinite(seconds) || seconds > 1e8)
    fail(ORR_INVALID, "ORRERY_DEADLINE='{}' is not a time in seconds, such as 30", text);
  return static_cast<int64_t>(seconds * 1e9);
}

}  // namespace orrery
