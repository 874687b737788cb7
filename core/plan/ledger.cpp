// SPDX-License-Identifier: Apache-2.0
#include "plan/ledger.h"

#include <algorithm>
#include <map>
#include <set>

#include "lower/wholes.h"
#include "plan/memory.h"

namespace orrery {
namespace {

// The bytes of the storages that hold casts of parameters.
uint64_t cast_bytes(const RankPlan& plan) {
  const Program& p = plan.local.program;
  std::set<int> storages;
  for (const Op& op : p.ops()) {
    bool cast = op.kind == "pointwise" && op.in.size() == 1 &&
                p.value(op.in[0]).role == Role::param && op.phase != Phase::update;
    for (ValueId v : op.out)
      if (cast && p.type(v).dtype != p.type(op.in[0]).dtype)
        storages.insert(plan.places[static_cast<size_t>(v)].storage);
  }
  uint64_t bytes = 0;
  for (int s : storages) bytes += plan.storage(s).whole();
  return bytes;
}

// The bytes of a category's storages; in the arena, the most that it has of them at a time. Buckets
// that lend each other memory count once, with all of it.
uint64_t bytes_of(const RankPlan& plan, const char* category) {
  uint64_t bytes = most_in_arena(plan, category), lent_from = UINT64_MAX, lent_to = 0;
  for (const Storage& s : plan.storages) {
    if (s.category != category || s.region == Region::arena) continue;
    if (!s.reused)
      bytes += s.whole();
    else
      lent_from = std::min(lent_from, s.offset), lent_to = std::max(lent_to, s.offset + s.whole());
  }
  return lent_to > lent_from ? bytes + lent_to - lent_from : bytes;
}

}  // namespace

Json ledger_json(const RankPlan& plan) {
  int64_t parameters = 0;
  std::map<const State*, int64_t> held;  // elements on this rank, of the parameter or its copy
  for (const Value& v : plan.local.program.values())
    if (const State* s = v.state.get(); s && (v.role == Role::param || s->copy_of)) {
      int64_t& n = held[s->copy_of ? s->copy_of : s];
      n = std::max(n, v.type.elements());
    }
  for (auto& [s, n] : held) parameters += n;
  Json roles = Json::array();
  auto add = [&](const char* role, uint64_t bytes) {
    if (bytes) roles.push_back({{"role", role}, {"bytes", bytes}});
  };
  add("parameter", bytes_of(plan, "parameter"));
  add("compute copy", bytes_of(plan, "compute copy") + cast_bytes(plan));
  add(kGatheredWeights, bytes_of(plan, kGatheredWeights));
  add(kFullGradients, bytes_of(plan, kFullGradients));
  add("gradient", bytes_of(plan, "gradient"));
  add("state", bytes_of(plan, "state"));
  return {{"parameters", parameters}, {"roles", std::move(roles)}};
}

}  // namespace orrery
