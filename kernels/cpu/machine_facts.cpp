// SPDX-License-Identifier: Apache-2.0
//
// See machine_facts.h.
#include "machine_facts.h"

#include <unistd.h>
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <functional>
#include <optional>
#include <sstream>
#include <utility>

#include "instruction_sets.h"
#include "machine_rates.h"
#include "shared/disk_cache.h"

namespace orr_cpu {
namespace {

constexpr const char* kVersion = "machine 2";  // of what is measured and how it is written

template <class... Numbers>
std::string text_of(const char* format, Numbers... numbers) {
  char text[160];
  std::snprintf(text, sizeof text, format, numbers...);
  return text;
}

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  std::string all;
  for (std::string line; std::getline(file, line) && !line.empty();)
    for (const char* field : {"cpu family\t", "model\t", "model name\t", "stepping\t",
                              "CPU implementer\t", "CPU variant\t", "CPU part\t"})
      if (line.rfind(field, 0) == 0) all += line.substr(line.find(':') + 1);
  return all;
}

// "L1 48K, L2 2048K, L3 307200K for CPUs 0-1", of the first CPU.
std::string caches() {
  std::string all;
  for (int i = 0;; ++i) {
    const std::string at = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(i) + "/";
    const std::string level = first_line(at + "level"), cpus = first_line(at + "shared_cpu_list");
    if (level.empty()) return all.empty() ? "the system does not say" : all;
    if (first_line(at + "type") == "Instruction") continue;
    all += (all.empty() ? "L" : ", L") + level + " " + first_line(at + "size");
    if (cpus != "0") all += " for CPUs " + cpus;
  }
}

// A rate that is measured several times, each time between the others: what else the CPUs do for a
// moment then spoils no figure.
struct Rate {
  Rate(std::string name, std::string unit, std::string more, std::function<double()> measure)
      : name(std::move(name)), unit(std::move(unit)), more(std::move(more)), measure(measure) {}
  void turn() {
    all = std::max(all, measure());
    const Alone alone;
    one = std::max(one, measure());
  }
  Fact fact() const {
    std::string text = text_of("%.0f %s on one thread", one * 1e-9, unit.c_str());
    if (threads() > 1) text += text_of(", %.0f on %d", all * 1e-9, int(threads()));
    return {name, text + more};
  }

  std::string name, unit, more;
  std::function<double()> measure;
  double one = 0, all = 0;
};

std::vector<Rate> rates(Isa widest) {
  std::vector<Rate> all;
  const auto product = [&](const std::string& name, const Product& p, const char* more = "") {
    all.emplace_back(name, "GFLOP/s", more, [p] { return rate_of(p); });
  };
  for (int isa = 0; isa <= widest; ++isa)
    if (was_built(Isa(isa))) product(std::string("f32 ") + name_of(Isa(isa)), {Isa(isa), ORR_F32});
  product("f32 cold", {widest, ORR_F32, false, true}, ", operands in memory");
  const bool pairs = widest == kAvx512 && pairs_are_fast();
  product("bf16", {widest, ORR_BF16}, pairs ? ", by vdpbf16ps" : ", by multiply-adds of f32");
  if (widest == kAvx512 && amx_works())
    product("bf16 amx", {widest, ORR_BF16, true}, ", with numerics = \"fast\"");
  all.emplace_back("memory", "GB/s read", "", read_bandwidth);
  return all;
}

// Lines of a rate's name, tab, what one thread and what all threads reach.
std::string written(const std::vector<Rate>& rates) {
  std::string text;
  for (const Rate& r : rates) text += r.name + text_of("\t%.9g %.9g\n", r.one, r.all);
  return text;
}

// Takes the better of each rate and what was kept of it.
void take_better(std::vector<Rate>& rates, const std::string& kept) {
  std::istringstream lines(kept);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream numbers(line.substr(line.find('\t') + 1));
    double one = 0, all = 0;
    if (!(numbers >> one >> all)) continue;
    for (Rate& r : rates)
      if (r.name == line.substr(0, line.find('\t')))
        r.one = std::max(r.one, one), r.all = std::max(r.all, all);
  }
}

}  // namespace

std::vector<Fact> machine_facts(const std::string& plugin, int widest) {
  if (widest < 0) return {};
  const std::string key = std::string(kVersion) + cpu_model() + ", isa " + std::to_string(widest) +
                          ", threads " + std::to_string(threads());
  const orr_kernels::DiskCache cache(plugin);
  const orr_kernels::DiskCache::Lock lock(cache, key);
  constexpr int turns = 4;
  std::vector<Rate> all = rates(Isa(widest));
  for (int turn = 0; turn < turns; ++turn)
    for (Rate& rate : all) rate.turn();
  if (const std::optional<std::string> kept = cache.kept(key)) take_better(all, *kept);
  cache.keep(key, written(all));
  std::vector<Fact> facts;
  for (const Rate& rate : all) facts.push_back(rate.fact());
  facts.push_back({"caches", caches()});
  return facts;
}

}  // namespace orr_cpu
