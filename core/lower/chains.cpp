// SPDX-License-Identifier: Apache-2.0
#include "lower/chains.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "program/state.h"

namespace orrery {

// Joins the tensors of the update that one op reads and writes, as far as they can lie alike.
class Chains::Joiner {
 public:
  explicit Joiner(Chains& chains) : c_(chains), p_(chains.p_), parent_(p_.values().size()) {
    for (size_t k = 0; k < c_.chains_.size(); ++k) {
      const Chain& chain = c_.chains_[k];
      by_name_[p_.value(c_.param(chain)).name] = static_cast<int>(k);
    }
    for (const Value& v : p_.values())
      if (v.state && v.role == Role::param) by_name_.emplace(v.name, kNone);
  }

  // An op that turns out to work on pieces of a tensor that it needs whole is known the next time.
  void run() {
    do {
      again_ = false;
      reset();
      for (size_t i = 0; i < p_.ops().size(); ++i)
        if (p_.ops()[i].phase == Phase::update) visit(static_cast<OpId>(i));
    } while (again_);
    for (size_t v = 0; v < member_.size(); ++v)
      c_.chain_of_[v] = member_[v] ? chain_[at(root(static_cast<ValueId>(v)))] : int{kNone};
  }

 private:
  static size_t at(int32_t i) { return static_cast<size_t>(i); }
  bool scalar(ValueId v) const { return p_.type(v).dims.empty(); }

  // Parameters that are cut, and states that lie as they do, also in programs that use them apart.
  void reset() {
    std::iota(parent_.begin(), parent_.end(), 0);
    chain_.assign(parent_.size(), kNone);
    rigid_.assign(parent_.size(), {});
    member_.assign(parent_.size(), false);
    for (size_t v = 0; v < member_.size(); ++v) {
      const Value& value = p_.values()[v];
      if (!value.state || value.type.dims.empty()) continue;
      member_[v] = value.role != Role::param;
      const std::string& name = value.role == Role::param ? value.name : value.state->beside;
      settle(static_cast<ValueId>(v), name);
    }
  }

  // Has a tensor lie as the parameter of this name does, if that is of its shape.
  void settle(ValueId v, const std::string& name) {
    const auto found = by_name_.find(name);
    if (found == by_name_.end()) return;
    if (found->second == kNone) {
      member_[at(v)] = false;
      return;
    }
    const ValueId param = c_.param(c_.chains_[at(found->second)]);
    if (p_.type(param).dims != p_.type(v).dims) return;
    member_[at(v)] = true, chain_[at(v)] = found->second;
  }

  ValueId root(ValueId v) {
    while (parent_[at(v)] != v) v = parent_[at(v)] = parent_[at(parent_[at(v)])];
    return v;
  }

  void visit(OpId index) {
    const Op& op = p_.ops()[at(index)];
    if (op.kind == "total") {
      const Value& sum = p_.value(op.in[0]);
      member_[at(op.out[0])] =
          is_exchanged_total(p_, op) && !scalar(op.out[0]) && !op.attrs.count("whole");
      if (member_[at(op.out[0])] && sum.role == Role::grad) settle(op.out[0], sum.name);
      return;
    }
    const bool constant = op.kind == "pointwise" && op.in.empty();
    const bool tensors =
        std::any_of(op.in.begin(), op.in.end(), [&](ValueId v) { return member_[at(v)]; });
    if (c_.reads_whole(op) || (!tensors && !constant)) return;
    for (ValueId v : op.out) member_[at(v)] = tensors || !scalar(v);
    if (const bool rigid = is_rigid(op); !join_all(op, rigid ? index : kNone)) {
      c_.whole_[at(index)] = true;
      for (ValueId v : op.out) member_[at(v)] = false;
    }
  }

  // Whether the op needs its tensors whole.
  bool is_rigid(const Op& op) const {
    static const std::set<std::string> elementwise = {"pointwise", "all_reduce", "permute",
                                                      "broadcast", "vary"};
    if (!elementwise.count(op.kind)) return true;
    for (const auto* side : {&op.in, &op.out})
      for (ValueId v : *side)
        if (scalar(v) ? member_[at(v)] : p_.type(v).dims != p_.type(op.out[0]).dims) return true;
    return false;
  }

  // False if these tensors lie apart, or in pieces that a rigid op cannot work on.
  bool join_all(const Op& op, OpId rigid) {
    int chain = kNone;
    for (const auto* side : {&op.in, &op.out})
      for (ValueId v : *side) {
        if (!member_[at(v)]) continue;
        const int its = chain_[at(root(v))];
        if (its == kNone) continue;
        if (chain == kNone) chain = its;
        if (!alike(chain, its)) return false;
      }
    if (rigid != kNone && chain != kNone && cut_inside(*c_.chains_[at(chain)].cuts)) return false;
    ValueId first = kNone;
    for (const auto* side : {&op.in, &op.out})
      for (ValueId v : *side)
        if (member_[at(v)]) first = first == kNone ? root(v) : join(first, v);
    if (rigid != kNone && first != kNone) rigid_[at(first)].push_back(rigid);
    return true;
  }

  // One owner has all of both, whatever their sizes.
  bool alike(int a, int b) const {
    if (a == b) return true;
    const Dims &one = *c_.chains_[at(a)].cuts, &other = *c_.chains_[at(b)].cuts;
    const auto owner = [](const Dims& cuts) {
      return std::find(cuts.begin(), cuts.end(), cuts.back()) - cuts.begin();
    };
    return !cut_inside(one) && !cut_inside(other) && owner(one) == owner(other);
  }

  ValueId join(ValueId a, ValueId b) {
    a = root(a), b = root(b);
    if (a == b) return a;
    parent_[at(b)] = a;
    if (chain_[at(a)] == kNone) chain_[at(a)] = chain_[at(b)];
    rigid_[at(a)].insert(rigid_[at(a)].end(), rigid_[at(b)].begin(), rigid_[at(b)].end());
    if (chain_[at(a)] != kNone && cut_inside(*c_.chains_[at(chain_[at(a)])].cuts))
      for (OpId op : std::exchange(rigid_[at(a)], {})) c_.whole_[at(op)] = again_ = true;
    return a;
  }

  Chains& c_;
  const Program& p_;
  std::map<std::string, int> by_name_;  // of parameters: their chains, kNone if they are not cut
  std::vector<ValueId> parent_;
  std::vector<int> chain_;                // by root
  std::vector<std::vector<OpId>> rigid_;  // by root: ops that it has joined
  // States, sums over the batch, and what the update makes of them: tensors, and scalars but for
  // those of whole tensors, which all ranks get.
  std::vector<char> member_;
  bool again_ = false;
};

bool is_whole_reduce(const Program& p, const Op& op) {
  return op.kind == "reduce" && op.phase == Phase::update && !p.type(op.in[0]).dims.empty() &&
         p.type(op.out[0]).dims.empty();
}

bool is_exchanged_total(const Program& p, const Op& op) {
  if (op.kind != "total" || p.value(op.in[0]).batch != Batch::partial) return false;
  OpId maker = p.value(op.in[0]).producer;
  if (maker == kNone) return false;
  const std::vector<ValueId>& in = p.ops()[static_cast<size_t>(maker)].in;
  return std::any_of(in.begin(), in.end(),
                     [&](ValueId v) { return p.value(v).batch == Batch::sharded; });
}

void keep_exchanged_whole(Program& p, const Spread& spread) {
  for (Op& op : p.mutable_ops()) {
    const OpId maker = op.kind == "total" ? p.value(op.in[0]).producer : kNone;
    if (maker == kNone) continue;
    const std::string all = spread.gradient_axis();
    if (attr_text(p.ops()[static_cast<size_t>(maker)].attrs, "among", all) != all)
      op.attrs["whole"] = int64_t{1};
  }
}

Chains::Chains(const Program& p, const std::vector<Unit>& units)
    : p_(p), units_(units), chain_of_(p.values().size(), kNone) {
  for (size_t u = 0; u < units.size(); ++u)
    for (size_t m = 0; m < units[u].params.size(); ++m)
      chains_.push_back({u, m, &units[u].shards[m]});
  for (const Op& op : p.ops())
    whole_.push_back(is_whole_reduce(p, op) ||
                     (op.phase == Phase::update && op.attrs.count("whole") > 0));
  Joiner(*this).run();
}

ValueId Chains::param(const Chain& c) const { return units_[c.unit].params[c.member]; }

const Chain* Chains::of(ValueId v) const {
  int found = chain_of_[static_cast<size_t>(v)];
  return found == kNone ? nullptr : &chains_[static_cast<size_t>(found)];
}

const Chain* Chains::of(const Op& op) const {
  if (op.phase != Phase::update || reads_whole(op)) return nullptr;
  for (const auto* side : {&op.out, &op.in})
    for (ValueId v : *side)
      if (const Chain* c = of(v)) return c;
  return nullptr;
}

}  // namespace orrery
