// SPDX-License-Identifier: Apache-2.0
#include "partition/shard/each.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "partition/localize.h"
#include "partition/timetable.h"

namespace orrery {

std::vector<bool> needed_once(const Program& p) {
  std::vector<char> needed(p.values().size());
  auto need = [&](ValueId v) { needed[static_cast<size_t>(v)] = true; };
  for (auto& [name, v] : p.outputs()) need(v);
  for (auto& [state, next] : p.updates()) need(next);
  std::vector<bool> found = once_a_step(p);
  for (size_t i = p.ops().size(); i-- > 0;) {
    const Op& op = p.ops()[i];
    const bool update = op.phase == Phase::update;
    const bool read = std::any_of(op.out.begin(), op.out.end(),
                                  [&](ValueId v) { return needed[static_cast<size_t>(v)] != 0; });
    found[i] = found[i] && !update && (read || is_awaited(op));
    if (found[i] || update) std::for_each(op.in.begin(), op.in.end(), need);
  }
  return found;
}

std::vector<Scatter> find_scatters(const Program& p, const Mesh& mesh,
                                   const std::vector<Unit>& units, const ShardedParams& params) {
  std::vector<Scatter> found;
  if (!mesh.fast_sums || !mesh.schedule.one_by_one) return found;
  // By unit, dtype and chunk of the sums, and how many sums its parameter has had before.
  std::map<std::tuple<size_t, int32_t, int32_t, int>, size_t> places;
  std::map<std::pair<size_t, size_t>, int> before;  // by unit and member
  std::set<ValueId> seen;
  for (const Op& op : p.ops()) {
    const ShardedParam* param = op.kind == "total" ? params.of(op) : nullptr;
    if (!param || !seen.insert(op.in[0]).second) continue;
    const Unit& unit = units[param->unit];
    const OpId maker = p.value(op.in[0]).producer;
    const Op& made = p.ops()[static_cast<size_t>(maker)];
    if (!unit.how.each || made.phase == Phase::update || mesh.size_of(unit.how.axis) == 1) continue;
    const int use = before[{param->unit, param->member}]++;
    const auto [at, fresh] =
        places.try_emplace({param->unit, p.type(op.in[0]).dtype, made.stage, use}, found.size());
    if (fresh) found.push_back({param->unit});
    Scatter& s = found[at->second];
    s.sums[param->member] = op.in[0];
    s.ready = std::max(s.ready, maker);
  }
  return found;
}

}  // namespace orrery
