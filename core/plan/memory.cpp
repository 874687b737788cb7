// SPDX-License-Identifier: Apache-2.0
#include "plan/memory.h"

#include <fmt/format.h>

#include <map>

#include "base/text.h"

namespace orrery {

std::map<std::string, uint64_t> peak_by_category(const RankPlan& plan) {
  std::vector<int64_t> change(
      plan.schedule.size() +
      2);  // by step: bytes that become alive minus bytes that ended before it
  for (const Storage& s : plan.storages) {
    if (s.region != Region::arena) continue;
    for (auto& [first, last] : s.alive) {
      change[static_cast<size_t>(first)] += static_cast<int64_t>(s.whole());
      change[static_cast<size_t>(last) + 1] -= static_cast<int64_t>(s.whole());
    }
  }
  int peak_step = 0;
  int64_t alive = 0, peak = 0;
  for (size_t step = 0; step < change.size(); ++step)
    if ((alive += change[step]) > peak) peak = alive, peak_step = static_cast<int>(step);
  std::map<std::string, uint64_t> parts;
  for (const Storage& s : plan.storages)
    if (s.region == Region::arena && s.bytes && s.alive_at(peak_step))
      parts[s.category] += s.whole();
  return parts;
}

std::map<std::string, uint64_t> memory_parts(const RankPlan& plan) {
  std::map<std::string, uint64_t> parts = {{"buckets", plan.comm_bytes},
                                           {"arena", plan.arena_bytes}};
  for (const Storage& s : plan.storages)
    if (s.region == Region::state && !s.is_away()) parts[s.category] += s.bytes;
  return parts;
}

std::string memory_text(const RankPlan& plan) {
  std::map<std::string, uint64_t> states;
  std::map<Tier, std::map<std::string, uint64_t>> away;
  for (const Storage& s : plan.storages)
    if (s.region == Region::state) (s.is_away() ? away[s.tier] : states)[s.category] += s.bytes;
  if (plan.host_stash) away[Tier::host]["activation"] = plan.host_stash;
  if (plan.disk_stash) away[Tier::disk]["activation"] = plan.disk_stash;
  std::string text = fmt::format("  memory  {:>14} bytes  {:>10}\n", plan.bytes(),
                                 human_bytes(static_cast<double>(plan.bytes())));
  auto line = [&](const std::string& name, uint64_t bytes, const char* note) {
    text += fmt::format("    {:<18} {:>14}  {:>10}  {}\n", name, bytes,
                        human_bytes(static_cast<double>(bytes)), note);
  };
  for (auto& [name, bytes] : states) line(name, bytes, "");
  line("buckets", plan.comm_bytes, "registered with the comm backend");
  if (plan.outside) line("outside", plan.outside, "of driver and libraries, beside the plan");
  line("arena peak", plan.arena_bytes, "of it, when it is fullest:");
  for (auto& [name, bytes] : peak_by_category(plan)) line("  " + name, bytes, "");
  for (auto& [tier, parts] : away) {
    const bool disk = tier == Tier::disk;
    line(disk ? "on disk" : "in host memory",
         disk ? plan.disk_bytes + plan.disk_stash : plan.host_bytes + plan.host_stash,
         "beside the rank's memory, of it:");
    for (auto& [name, bytes] : parts) line("  " + name, bytes, "");
  }
  return text;
}

}  // namespace orrery
