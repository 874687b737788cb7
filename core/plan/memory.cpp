// SPDX-License-Identifier: Apache-2.0
#include "plan/memory.h"

#include <algorithm>
#include <set>

#include "lower/lower.h"
#include "plan/traffic.h"
#include "program/state.h"

namespace orrery {

namespace {

struct Peak {
  int64_t bytes = 0;
  int step = 0;  // of the schedule
};

// When the arena has most of the storages that `counts` is true of.
template <class Counts>
Peak peak_of(const RankPlan& plan, Counts counts) {
  // By step: bytes that become alive minus bytes that ended before it.
  std::vector<int64_t> change(plan.schedule.size() + 2);
  for (const Storage& s : plan.storages) {
    if (s.region != Region::arena || !counts(s)) continue;
    for (auto& [first, last] : s.alive) {
      change[static_cast<size_t>(first)] += static_cast<int64_t>(s.whole());
      change[static_cast<size_t>(last) + 1] -= static_cast<int64_t>(s.whole());
    }
  }
  Peak peak;
  int64_t alive = 0;
  for (size_t step = 0; step < change.size(); ++step)
    if ((alive += change[step]) > peak.bytes) peak = {alive, static_cast<int>(step)};
  return peak;
}

}  // namespace

uint64_t most_in_arena(const RankPlan& plan, const std::string& category) {
  return static_cast<uint64_t>(
      peak_of(plan, [&](const Storage& s) { return s.category == category; }).bytes);
}

std::map<std::string, uint64_t> peak_by_category(const RankPlan& plan) {
  const int peak_step = peak_of(plan, [](const Storage&) { return true; }).step;
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

std::map<std::string, uint64_t> parts_of_rounds(const Blueprint& b, const RankPlan& step,
                                                const std::vector<std::string>& kernels) {
  std::set<const State*> known;
  for (const StatePart& held : step.local.parts) known.insert(held.state.get());
  std::map<std::string, uint64_t> parts;
  uint64_t arena = step.arena_bytes;
  for (const Periodic& one : b.asked.periodic)
    for (const auto& round : one.rounds) {
      const Mesh mesh = mesh_of_periodic(b.mesh);
      const RankPlan plan = lower({round.get(), &mesh, b.microbatches, step.rank, kernels});
      for (const StatePart& held : plan.local.parts)
        if (held.tier == Tier::device && known.insert(held.state.get()).second)
          parts["state"] += held.part.type(held.state->type).bytes();
      parts["buckets"] += plan.comm_bytes;
      arena = std::max(arena, plan.arena_bytes);
    }
  if (arena > step.arena_bytes) parts["arena"] = arena - step.arena_bytes;
  return parts;
}

uint64_t checkpoint_bytes(const Blueprint& b) {
  std::set<const State*> known;
  uint64_t bytes = 0;
  const auto add = [&](const Program& p) {
    for (const Value& v : p.values()) {
      const State* s = v.state.get();
      if (!s || s->constant || s->passing || s->copy_of || !known.insert(s).second) continue;
      bytes += s->type.bytes() * static_cast<uint64_t>(b.mesh.size_of(s->varying));
    }
  };
  add(b.program);
  for (const Periodic& one : b.asked.periodic)
    for (const auto& round : one.rounds) add(*round);
  return bytes;
}

Json away_json(const RankPlan& plan) {
  std::map<Tier, std::map<std::string, uint64_t>> away;
  for (const Storage& s : plan.storages)
    if (s.region == Region::state && s.is_away()) away[s.tier][s.category] += s.bytes;
  if (plan.host_stash) away[Tier::host]["activation"] = plan.host_stash;
  if (plan.disk_stash) away[Tier::disk]["activation"] = plan.disk_stash;
  Json tiers = Json::array();
  for (auto& [tier, parts] : away)
    tiers.push_back({{"tier", tier_name(tier)},
                     {"bytes", tier == Tier::disk ? plan.disk_bytes + plan.disk_stash
                                                  : plan.host_bytes + plan.host_stash},
                     {"parts", parts}});
  return tiers;
}

}  // namespace orrery
