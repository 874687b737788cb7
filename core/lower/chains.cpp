// SPDX-License-Identifier: Apache-2.0
#include "lower/chains.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "base/error.h"
#include "program/state.h"

namespace orrery {
namespace {

// Joins the tensors of the update that one op reads and writes.
class Joiner {
 public:
  explicit Joiner(const Program& p)
      : p_(p),
        parent_(p.values().size()),
        member_(p.values().size()),
        rigid_(p.values().size(), kNone) {
    std::iota(parent_.begin(), parent_.end(), 0);
    for (size_t v = 0; v < member_.size(); ++v)
      member_[v] = p.values()[v].state && !p.values()[v].type.dims.empty();
    for (size_t i = 0; i < p.ops().size(); ++i)
      if (p.ops()[i].phase == Phase::update) visit(static_cast<OpId>(i));
    join_companions();
  }

  int root(ValueId v) {
    while (parent_[at(v)] != v) v = parent_[at(v)] = parent_[at(parent_[at(v)])];
    return v;
  }
  // States, sums over the batch, and what the update makes of them: tensors, and scalars but for
  // those of whole tensors, which all ranks get.
  bool member(ValueId v) const { return member_[at(v)]; }
  OpId rigid(ValueId v) { return rigid_[at(root(v))]; }

  // Whether the op, of the update, needs its tensors whole.
  bool is_rigid(const Op& op) const {
    static const std::set<std::string> elementwise = {"pointwise", "all_reduce", "permute",
                                                      "broadcast", "vary"};
    if (!elementwise.count(op.kind)) return true;
    for (const auto* side : {&op.in, &op.out})
      for (ValueId v : *side)
        if (scalar(v) ? member(v) : p_.type(v).dims != p_.type(op.out[0]).dims) return true;
    return false;
  }

 private:
  static size_t at(int32_t i) { return static_cast<size_t>(i); }
  bool scalar(ValueId v) const { return p_.type(v).dims.empty(); }

  void visit(OpId index) {
    const Op& op = p_.ops()[at(index)];
    if (op.kind == "total") {
      member_[at(op.out[0])] = is_exchanged_total(p_, op) && !scalar(op.out[0]);
      return;
    }
    const bool constant = op.kind == "pointwise" && op.in.empty();
    bool tensors = std::any_of(op.in.begin(), op.in.end(), [&](ValueId v) { return member(v); });
    if (reads_whole(p_, op) || (!tensors && !constant)) return;
    for (ValueId v : op.out) member_[at(v)] = tensors || !scalar(v);
    ValueId first = kNone;
    for (const auto* side : {&op.in, &op.out})
      for (ValueId v : *side) {
        if (!member(v)) continue;
        if (first == kNone) first = root(v);
        join(first, v);
      }
    if (first != kNone && is_rigid(op) && rigid_[at(root(first))] == kNone)
      rigid_[at(root(first))] = index;
  }

  // States lie as their parameters do, also in programs that use them apart.
  void join_companions() {
    std::map<std::string, ValueId> params;
    for (size_t v = 0; v < p_.values().size(); ++v)
      if (const Value& value = p_.values()[v]; value.state && value.role == Role::param)
        params[value.name] = static_cast<ValueId>(v);
    for (size_t v = 0; v < p_.values().size(); ++v) {
      const Value& value = p_.values()[v];
      if (!value.state || value.state->beside.empty()) continue;
      auto param = params.find(value.state->beside);
      if (param != params.end() && p_.type(param->second).dims == value.type.dims && member_[v])
        join(param->second, static_cast<ValueId>(v));
    }
  }

  void join(ValueId a, ValueId b) {
    a = root(a), b = root(b);
    if (a == b) return;
    parent_[at(b)] = a;
    if (rigid_[at(a)] == kNone) rigid_[at(a)] = rigid_[at(b)];
  }

  const Program& p_;
  std::vector<ValueId> parent_;
  std::vector<char> member_;
  std::vector<OpId> rigid_;
};

}  // namespace

bool is_whole_reduce(const Program& p, const Op& op) {
  return op.kind == "reduce" && op.phase == Phase::update && !p.type(op.in[0]).dims.empty() &&
         p.type(op.out[0]).dims.empty();
}

bool reads_whole(const Program& p, const Op& op) {
  return is_whole_reduce(p, op) || op.attrs.count("whole");
}

bool is_exchanged_total(const Program& p, const Op& op) {
  if (op.kind != "total" || p.value(op.in[0]).batch != Batch::partial) return false;
  OpId maker = p.value(op.in[0]).producer;
  if (maker == kNone) return false;
  const std::vector<ValueId>& in = p.ops()[static_cast<size_t>(maker)].in;
  return std::any_of(in.begin(), in.end(),
                     [&](ValueId v) { return p.value(v).batch == Batch::sharded; });
}

void gather_for_rigid(Program& p, const Spread& spread) {
  Joiner joined(p);
  std::set<ValueId> cut;
  for (const Unit& unit : find_units(p, spread))
    for (size_t m = 0; m < unit.params.size(); ++m)
      if (cut_inside(unit.shards[m])) cut.insert(joined.root(unit.params[m]));
  for (Op& op : p.mutable_ops()) {
    const bool reads = std::any_of(op.in.begin(), op.in.end(), [&](ValueId v) {
      return joined.member(v) && cut.count(joined.root(v));
    });
    if (reads && !is_whole_reduce(p, op) && joined.is_rigid(op)) op.attrs["whole"] = int64_t{1};
  }
}

Chains::Chains(const Program& p, const std::vector<Unit>& units)
    : p_(p), chain_of_(p.values().size(), kNone) {
  Joiner joined(p);
  std::vector<int> by_root(p.values().size(), kNone);
  for (size_t u = 0; u < units.size(); ++u)
    for (size_t m = 0; m < units[u].params.size(); ++m) {
      ValueId param = units[u].params[m];
      int& known = by_root[static_cast<size_t>(joined.root(param))];
      const Dims& cuts = units[u].shards[m];
      OpId rigid = joined.rigid(param);
      const std::string who = p.value(param).state->site.prefix() + "'" + p.value(param).name + "'";
      if (rigid != kNone && cut_inside(cuts))
        fail(ORR_INVALID,
             "{} cannot be updated in pieces: '{}' of its update ({}) is not elementwise; have "
             "strategy.{} deal whole tensors, so that one rank updates all of it",
             who, p.ops()[static_cast<size_t>(rigid)].kind,
             p.ops()[static_cast<size_t>(rigid)].site.line, units[u].how.cause);
      if (known != kNone) {
        const Dims& other = *chains_[static_cast<size_t>(known)].cuts;
        auto owner = [](const Dims& c) {
          return std::find(c.begin(), c.end(), c.back()) - c.begin();
        };
        if (cut_inside(cuts) || cut_inside(other) || owner(cuts) != owner(other))
          fail(ORR_INVALID,
               "{} is updated together with '{}', but another rank owns that: strategy.{} cannot "
               "cut an optimizer whose parameters use each other's tensors",
               who,
               p.value(units[chains_[static_cast<size_t>(known)].unit]
                           .params[chains_[static_cast<size_t>(known)].member])
                   .name,
               units[u].how.cause);
        continue;
      }
      known = static_cast<int>(chains_.size());
      chains_.push_back({u, m, &cuts, rigid});
    }
  for (size_t v = 0; v < p.values().size(); ++v)
    if (joined.member(static_cast<ValueId>(v)))
      chain_of_[v] = by_root[static_cast<size_t>(joined.root(static_cast<ValueId>(v)))];
}

const Chain* Chains::of(ValueId v) const {
  int found = chain_of_[static_cast<size_t>(v)];
  return found == kNone ? nullptr : &chains_[static_cast<size_t>(found)];
}

const Chain* Chains::of(const Op& op) const {
  if (op.phase != Phase::update || reads_whole(p_, op)) return nullptr;
  for (const auto* side : {&op.out, &op.in})
    for (ValueId v : *side)
      if (const Chain* c = of(v)) return c;
  return nullptr;
}

}  // namespace orrery
