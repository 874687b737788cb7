// SPDX-License-Identifier: Apache-2.0
//
// `orrery doctor`: what this machine offers and what of Orrery works on it.
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

namespace orrery {
namespace {

// A launcher and the variables of which it sets both; the first that fits is the one.
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

// What is reported, in the order in which it is printed.
std::vector<std::pair<std::string, std::string>> facts() {
  return {{"version", ORRERY_VERSION},
          {"compiler", ORR_BUILD_TEXT},
          {"lua", ORRERY_LUA_VERSION},
          {"cpu", cpu_model()},
          {"features", cpu_features()},
          {"cores",
           fmt::format("{} allowed of {}", allowed_cpus().size(), sysconf(_SC_NPROCESSORS_ONLN))},
          {"memory", fmt::format("{} available of {}", human_bytes(double(memory_available())),
                                 human_bytes(double(memory_total())))},
          {"shared memory", shared_memory()},
          {"gpu", gpu_driver()},
          {"launched by", launch_environment()}};
}

void print_text() {
  for (const auto& [name, value] : facts()) fmt::print("{:<14} {}\n", name, value);
  for (const PluginState& s : survey_plugins())
    fmt::print("{:<14} {} {}: {}\n", s.on ? "plugin on" : "plugin off", s.kind, s.name,
               s.on ? s.summary : s.reason);
}

void print_json() {
  nlohmann::ordered_json all;
  for (const auto& [name, value] : facts()) all[name] = value;
  all["plugins"] = to_json(survey_plugins());
  fmt::print("{}\n", all.dump(2));
}

}  // namespace

void add_doctor(CLI::App& app, int&) {
  CLI::App* command =
      app.add_subcommand("doctor",
                         "Report what this machine offers and which plugins work on it.\n\n"
                         "Examples:\n  orrery doctor\n  orrery doctor --json\n");
  auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "print JSON");
  command->callback([json] { *json ? print_json() : print_text(); });
}

}  // namespace orrery
