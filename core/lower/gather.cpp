// SPDX-License-Identifier: Apache-2.0
#include "lower/gather.h"

#include <orrery/strategy.h>

#include <algorithm>
#include <numeric>

#include "program/build.h"
#include "program/state.h"

namespace orrery {

std::vector<ValueId> gather_together(Program& p, const std::vector<Pieces>& tensors, int32_t dtype,
                                     const Among& among, const std::string& home) {
  Dims counts(tensors[0].cuts.size() - 1, 0), sizes;
  std::vector<ValueId> own;
  for (const Pieces& t : tensors) {
    for (size_t r = 0; r < counts.size(); ++r) counts[r] += t.cuts[r + 1] - t.cuts[r];
    sizes.push_back(t.cuts.back() - t.cuts.front());
    for (ValueId v : t.own)
      if (const int64_t n = v == kNone ? 0 : p.type(v).elements(); n > 0)
        own.push_back(build::reshape(p, v, {n}));
  }
  Op op;
  op.kind = "all_gather", op.phase = p.phase(), op.site = p.site();
  op.attrs = {{"axis", among.axis},
              {"cause", among.cause},
              {"counts", counts},
              {"me", int64_t{among.me}},
              {"always", int64_t{1}}};
  if (!home.empty()) op.attrs["home"] = home;
  if (!own.empty()) op.in = {build::concat(p, own, 0)};
  const ValueId all = p.new_value(
      {dtype, {std::accumulate(sizes.begin(), sizes.end(), int64_t{0})}}, Role::activation);
  op.out = {all};
  p.append(std::move(op));
  return sizes.size() == 1 ? std::vector{all} : build::split(p, all, 0, sizes);
}

void cut_value(Value& state, int64_t begin, int64_t end) {
  if (begin == 0 && end == state.type.elements()) return;
  state.type.dims = {end - begin};
  if (begin == end)
    state.part = {{}, 0, 0};
  else
    state.part.begin = begin, state.part.end = end;
}

ParamGather::ParamGather(const Program& from, Program& to, const std::vector<Unit>& units,
                         const Spread& spread, int rank)
    : from_(from), to_(to), units_(units), spread_(spread), rank_(rank) {
  for (const Unit& unit : units)
    if (unit.how.what >= ORR_SHARD_PARAM) hold(unit);
}

void ParamGather::hold(const Unit& unit) {
  size_t me = static_cast<size_t>(spread_.coordinate(unit.how.axis, rank_));
  for (size_t m = 0; m < unit.params.size(); ++m) {
    ValueId param = unit.read[m];
    const Value& whole = from_.value(param);
    ValueId held = to_.new_value(whole.type, whole.role, whole.name);
    Value& v = to_.mutable_value(held);
    v.state = whole.state, v.part = whole.part, v.tier = whole.tier, v.site = whole.site;
    v.varying = whole.varying;
    cut_value(v, unit.shards[m][me], unit.shards[m][me + 1]);
    Value& gathered = to_.mutable_value(param);
    gathered.state = nullptr, gathered.part = {}, gathered.tier = Tier::device,
    gathered.role = Role::activation;
    held_[param] = held;
  }
}

// Where the units are first used in a phase, and some units earlier: where their gathering begins.
std::vector<ParamGather::Use> ParamGather::find_uses(Phase phase) const {
  std::vector<Use> uses;
  for (size_t u = 0; u < units_.size(); ++u) {
    if (units_[u].how.what < ORR_SHARD_PARAM) continue;
    for (size_t i = 0; i < from_.ops().size(); ++i) {
      const Op& op = from_.ops()[i];
      if (op.phase != phase || std::none_of(op.in.begin(), op.in.end(), [&](ValueId v) {
            return std::find(units_[u].read.begin(), units_[u].read.end(), v) !=
                   units_[u].read.end();
          }))
        continue;
      uses.push_back({u, static_cast<OpId>(i), static_cast<OpId>(i)});
      break;
    }
  }
  std::sort(uses.begin(), uses.end(), [](const Use& a, const Use& b) { return a.first < b.first; });
  for (size_t k = 0; k < uses.size(); ++k) {
    const auto ahead = static_cast<size_t>(units_[uses[k].unit].how.ahead);
    uses[k].at = uses[k - std::min(k, ahead)].first;
  }
  return uses;
}

void ParamGather::emit_early() {
  std::vector<Use> forward = find_uses(Phase::forward), backward = find_uses(Phase::backward);
  std::erase_if(backward, [&](const Use& b) {
    bool known =
        std::any_of(forward.begin(), forward.end(), [&](const Use& f) { return f.unit == b.unit; });
    return units_[b.unit].how.keep && known;
  });
  std::vector<OpId> moved(from_.ops().size(), kNone);
  for (size_t i = 0; i < from_.ops().size(); ++i) {
    Op op = from_.ops()[i];
    if (op.phase == Phase::update) continue;
    for (const Use& use : forward)
      if (use.at == static_cast<OpId>(i)) gather(units_[use.unit], Phase::forward);
    for (const Use& use : backward)
      if (use.at == static_cast<OpId>(i)) gather(units_[use.unit], Phase::backward);
    if (op.twin != kNone) op.twin = moved[static_cast<size_t>(op.twin)];
    if (op.phase == Phase::backward)
      for (ValueId& v : op.in)
        if (auto again = again_.find(v); again != again_.end()) v = again->second;
    moved[i] = static_cast<OpId>(to_.ops().size());
    to_.append(std::move(op));
  }
}

void ParamGather::gather(const Unit& unit, Phase phase) {
  const Value& first = from_.value(unit.read[0]);
  to_.set_phase(phase), to_.set_site(first.site);
  std::vector<Pieces> pieces;
  for (size_t m = 0; m < unit.read.size(); ++m)
    pieces.push_back({{held_.at(unit.read[m])}, unit.shards[m]});
  const std::vector<ValueId> wholes =
      gather_together(to_, pieces, first.type.dtype, among(unit.how, spread_, rank_));
  for (size_t m = 0; m < unit.read.size(); ++m) {
    ValueId param = unit.read[m];
    Op view;
    view.kind = "reshape", view.phase = phase, view.site = to_.site(), view.in = {wholes[m]};
    view.attrs["dims"] = from_.type(param).dims;
    bool used = phase == Phase::forward || to_.value(param).producer == kNone;
    view.out = {used ? param
                     : (again_[param] = to_.new_value(from_.type(param), Role::activation))};
    to_.append(std::move(view));
  }
}

}  // namespace orrery
