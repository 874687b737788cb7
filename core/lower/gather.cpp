// SPDX-License-Identifier: Apache-2.0
#include "lower/gather.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "program/build.h"

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

namespace {

class Gatherer {
 public:
  Gatherer(const Program& from, Program& to, const std::vector<Unit>& units, const Spread& spread,
           int rank)
      : from_(from), to_(to), units_(units), spread_(spread), rank_(rank) {
    for (Phase phase : {Phase::forward, Phase::backward}) find_uses(phase);
  }

  void run() {
    std::vector<OpId> moved(from_.ops().size(), kNone);
    for (size_t i = 0; i < from_.ops().size(); ++i) {
      Op op = from_.ops()[i];
      if (op.phase == Phase::update) continue;
      for (const Use& use : uses_)
        if (use.at == i) gather(units_[use.unit], op.phase);
      if (op.twin != kNone) op.twin = moved[static_cast<size_t>(op.twin)];
      for (ValueId& v : op.in)
        if (const auto whole = whole_.find(v); whole != whole_.end()) v = whole->second;
      moved[i] = static_cast<OpId>(to_.ops().size());
      to_.append(std::move(op));
    }
  }

 private:
  struct Use {
    size_t unit;
    size_t first;  // the op that uses it first
    size_t at;     // the op before which it is gathered
  };

  static bool reads(const Op& op, const Unit& unit) {
    return std::any_of(op.in.begin(), op.in.end(), [&](ValueId v) {
      return std::find(unit.read.begin(), unit.read.end(), v) != unit.read.end();
    });
  }

  // Where the units are first used in a phase, and some units earlier: where their gathering begins.
  void find_uses(Phase phase) {
    std::vector<Use> uses;
    for (size_t u = 0; u < units_.size(); ++u)
      for (size_t i = 0; i < from_.ops().size() && units_[u].in_pieces(); ++i)
        if (const Op& op = from_.ops()[i]; op.phase == phase && reads(op, units_[u])) {
          uses.push_back({u, i, i});
          break;
        }
    std::sort(uses.begin(), uses.end(),
              [](const Use& a, const Use& b) { return a.first < b.first; });
    for (size_t k = 0; k < uses.size(); ++k)
      uses[k].at = uses[k - std::min(k, static_cast<size_t>(units_[uses[k].unit].how.ahead))].first;
    for (const Use& use : uses) {
      const bool kept = units_[use.unit].how.keep &&
                        std::any_of(uses_.begin(), uses_.end(),
                                    [&](const Use& before) { return before.unit == use.unit; });
      if (!kept) uses_.push_back(use);
    }
  }

  void gather(const Unit& unit, Phase phase) {
    const Value& first = from_.value(unit.read[0]);
    to_.set_phase(phase), to_.set_site(first.site);
    std::vector<Pieces> pieces;
    for (size_t m = 0; m < unit.read.size(); ++m)
      pieces.push_back({{unit.read[m]}, unit.shards[m]});
    const std::vector<ValueId> flat =
        gather_together(to_, pieces, first.type.dtype, among(unit.how, spread_, rank_));
    for (size_t m = 0; m < unit.read.size(); ++m)
      whole_[unit.read[m]] = build::reshape(to_, flat[m], from_.type(unit.read[m]).dims);
  }

  const Program& from_;
  Program& to_;
  const std::vector<Unit>& units_;
  const Spread& spread_;
  int rank_;
  std::vector<Use> uses_;             // of both phases
  std::map<ValueId, ValueId> whole_;  // what lies in pieces -> its whole, gathered last
};

}  // namespace

void gather_where_used(const Program& from, Program& to, const std::vector<Unit>& units,
                       const Spread& spread, int rank) {
  Gatherer(from, to, units, spread, rank).run();
}

}  // namespace orrery
