// SPDX-License-Identifier: Apache-2.0
//
// Machine facts from /proc and sched_getaffinity.
#include "base/machine.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/resource.h>

#include <fstream>
#include <sstream>
#include <string_view>

#include "base/text.h"

namespace orrery {
namespace {

// The text after the colon of the first line of `file` that begins with `key`.
std::string proc_field(const char* file, std::string_view key) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(key)) continue;
    size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    size_t start = line.find_first_not_of(" \t", colon + 1);
    return start == std::string::npos ? "" : line.substr(start);
  }
  return "";
}

uint64_t meminfo(std::string_view key) {
  std::string kilobytes = proc_field("/proc/meminfo", key);
  return kilobytes.empty() ? 0 : std::stoull(kilobytes) * 1024;
}

std::vector<int> affinity() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
      if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  if (cpus.empty()) cpus.push_back(0);
  return cpus;
}

}  // namespace

std::vector<int> allowed_cpus() {
  static const std::vector<int> cpus = affinity();
  return cpus;
}

void run_on(const std::vector<int>& cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int cpu : cpus) CPU_SET(cpu, &set);
  sched_setaffinity(0, sizeof set, &set);  // 0: this thread
}

std::string cpu_model() {
  std::string model = proc_field("/proc/cpuinfo", "model name");
  return model.empty() ? "unknown CPU" : model;
}

std::string cpu_features() {
  static constexpr std::string_view known[] = {"avx2",        "fma",      "avx512f", "avx512bw",
                                               "avx512_bf16", "amx_bf16", "asimd",   "sve"};
  std::string flags = proc_field("/proc/cpuinfo", "flags");
  if (flags.empty()) flags = proc_field("/proc/cpuinfo", "Features");
  std::string found;
  std::istringstream stream(flags);
  for (std::string flag; stream >> flag;)
    for (std::string_view name : known)
      if (flag == name) found += (found.empty() ? "" : " ") + flag;
  return found;
}

uint64_t memory_total() { return meminfo("MemTotal"); }
uint64_t memory_available() { return meminfo("MemAvailable"); }

std::string memory_bound() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    return fmt::format("the limit of this process is {} (ulimit -v)",
                       human_bytes(static_cast<double>(limit.rlim_cur)));
  return fmt::format("{} of {} are available", human_bytes(static_cast<double>(memory_available())),
                     human_bytes(static_cast<double>(memory_total())));
}

std::string out_of_threads() {
  return fmt::format("no further thread can be started ({}; ulimit -u): give fewer --threads",
                     memory_bound());
}

std::string out_of_memory() {
  return fmt::format("there is not enough memory for what this asks for ({}): are the sizes right?",
                     memory_bound());
}

}  // namespace orrery
