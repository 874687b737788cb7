// SPDX-License-Identifier: Apache-2.0
//
// `orrery doctor`: reports what this machine offers and which plugins work on it.
#include <orrery/plugin.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "base/config.h"
#include "base/error.h"
#include "base/machine.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/plugin_survey.h"
#include "launch/affinity.h"
#include "launch/wire.h"

namespace orrery {
namespace {

// A launcher and two variables that it sets; the first launcher whose variables are both set
// counts.
struct Launcher {
  const char *name, *rank, *size;
};
constexpr Launcher launchers[] = {
    {"orrery run", "ORRERY_RANK", "ORRERY_WORLD_SIZE"},
    {"torchrun", "RANK", "WORLD_SIZE"},
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"MPICH or Intel MPI", "PMI_RANK", "PMI_SIZE"},
    {"Slurm step", "SLURM_STEP_ID", "SLURM_NTASKS"},
};

std::string launch_environment() {
  for (const Launcher& launcher : launchers)
    if (std::getenv(launcher.rank) && std::getenv(launcher.size))
      return fmt::format("{} ({}={}, {}={})", launcher.name, launcher.rank,
                         std::getenv(launcher.rank), launcher.size, std::getenv(launcher.size));
  return "none: a single process";
}

std::string gpu_driver() {
  std::ifstream version("/proc/driver/nvidia/version");
  std::string line;
  return std::getline(version, line) ? line : "no NVIDIA driver here";
}

std::string shared_memory() {
  struct statvfs facts;
  if (statvfs("/dev/shm", &facts) != 0) return "/dev/shm is not there; mount a tmpfs on it";
  const double unit = double(facts.f_frsize);
  return fmt::format("{} free of {}", human_bytes(unit * double(facts.f_bavail)),
                     human_bytes(unit * double(facts.f_blocks)));
}

using Facts = std::vector<std::pair<std::string, std::string>>;

std::string counted(size_t n, const char* what) {
  return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
}

// The cores that this process may use; all cores if hwloc describes another machine.
struct Cores {
  Topology machine = Topology::load();
  std::vector<Core> allowed = machine.here ? machine.allowed(allowed_cpus()) : machine.cores;
};

std::string topology(const Cores& cores) {
  size_t threads = 0;
  for (const Core& core : cores.allowed) threads += core.size();
  const auto packages = static_cast<size_t>(cores.machine.packages);
  const auto nodes = static_cast<size_t>(cores.machine.nodes);
  return fmt::format("{}, {}; allowed: {}, {}{}", counted(packages, "package"),
                     counted(nodes, "NUMA node"), counted(cores.allowed.size(), "core"),
                     counted(threads, "hardware thread"),
                     cores.machine.here ? "" : " (not this machine)");
}

// Adds the CPUs and threads that `orrery run -n RANKS` gives to each rank.
void add_shares(Facts& facts, const Cores& cores, int ranks) {
  for (int r = 0; r < ranks; ++r) {
    const Share share = share_of(cores.allowed, r, ranks);
    const std::string pinned = share.cpus.empty() ? "not pinned: CPUs cannot be shared evenly"
                                                  : "pinned to CPUs " + cpu_list(share.cpus);
    const auto threads = static_cast<size_t>(share.threads);
    facts.emplace_back(fmt::format("rank {}", r), pinned + ", " + counted(threads, "thread"));
  }
}

// The facts that are reported, in the order of printing.
Facts facts(int ranks) {
  const Cores cores;
  Facts all = {{"version", ORRERY_VERSION},
               {"compiler", ORR_BUILD_TEXT},
               {"lua", ORRERY_LUA_VERSION},
               {"cpu", cpu_model()},
               {"features", cpu_features()},
               {"cores", fmt::format("{} allowed of {}", allowed_cpus().size(),
                                     sysconf(_SC_NPROCESSORS_ONLN))},
               {"topology", topology(cores)},
               {"memory", fmt::format("{} available of {}", human_bytes(double(memory_available())),
                                      human_bytes(double(memory_total())))},
               {"shared memory", shared_memory()},
               {"gpu", gpu_driver()},
               {"launched by", launch_environment()}};
  if (ranks > 0) add_shares(all, cores, ranks);
  return all;
}

void print_text(int ranks) {
  for (const auto& [name, value] : facts(ranks)) fmt::print("{:<14} {}\n", name, value);
  for (const PluginState& s : survey_plugins())
    fmt::print("{:<14} {} {}: {}\n", s.on ? "plugin on" : "plugin off", s.kind, s.name,
               s.on ? s.summary : s.reason);
}

void print_json(int ranks) {
  nlohmann::ordered_json all;
  for (const auto& [name, value] : facts(ranks)) all[name] = value;
  all["plugins"] = to_json(survey_plugins());
  fmt::print("{}\n", all.dump(2));
}

}  // namespace

void add_doctor(CLI::App& app, int&) {
  CLI::App* command = app.add_subcommand(
      "doctor",
      "Report what this machine offers and which plugins work on it.\n\n"
      "Examples:\n  orrery doctor\n  orrery doctor -n 4\n  orrery doctor --json\n");
  auto json = std::make_shared<bool>(false);
  auto ranks = std::make_shared<int>(0);
  command->add_flag("--json", *json, "print JSON");
  command->add_option("-n,--ranks", *ranks, "Show how this many ranks would share the cores")
      ->check(CLI::Range(1, wire::max_ranks));
  command->callback([json, ranks] { *json ? print_json(*ranks) : print_text(*ranks); });
}

}  // namespace orrery
