// SPDX-License-Identifier: Apache-2.0
#include "lower/chains.h"

#include <algorithm>
#include <set>

#include "program/state.h"

namespace orrery {
namespace {

size_t at(int32_t i) { return static_cast<size_t>(i); }

// Whether this op is a sum over the batch that ranks must add up.
bool is_exchanged_total(const Program& p, const Op& op) {
  if (op.kind != "total" || p.value(op.in[0]).batch != Batch::partial) return false;
  OpId maker = p.value(op.in[0]).producer;
  if (maker == kNone) return false;
  const std::vector<ValueId>& in = p.ops()[static_cast<size_t>(maker)].in;
  return std::any_of(in.begin(), in.end(),
                     [&](ValueId v) { return p.value(v).batch == Batch::sharded; });
}

bool is_elementwise(const Op& op) {
  static const std::set<std::string> kinds = {"pointwise", "all_reduce", "permute", "broadcast",
                                              "vary"};
  return kinds.count(op.kind) > 0;
}

// The ranks of one owner have all of both, whatever their sizes.
bool alike(const Dims& one, const Dims& other) {
  const auto owner = [](const Dims& cuts) {
    return std::find(cuts.begin(), cuts.end(), cuts.back()) - cuts.begin();
  };
  return &one == &other || (!cut_inside(one) && !cut_inside(other) && owner(one) == owner(other));
}

}  // namespace

bool is_whole_reduce(const Program& p, const Op& op) {
  return op.kind == "reduce" && op.phase == Phase::update && !p.type(op.in[0]).dims.empty() &&
         p.type(op.out[0]).dims.empty();
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
    : p_(p), chain_of_(p.values().size(), kNone) {
  find_states(units);
  find_sources();
  for (const Op& op : p.ops())
    gathers_.push_back(op.phase == Phase::update && op.kind != "total" && follow(op));
}

// Parameters that are cut, and the states of their shape beside them.
void Chains::find_states(const std::vector<Unit>& units) {
  for (size_t u = 0; u < units.size(); ++u)
    for (size_t m = 0; m < units[u].params.size(); ++m) {
      by_name_[p_.value(units[u].params[m]).name] = static_cast<int>(chains_.size());
      chains_.push_back({u, m, &units[u].shards[m], p_.type(units[u].params[m]).dims});
    }
  for (size_t v = 0; v < chain_of_.size(); ++v)
    if (const Value& value = p_.values()[v]; value.state)
      chain_of_[v] = named(value.role == Role::param ? value.name : value.state->beside, value);
}

// The chain of a parameter, for a tensor of its shape.
int Chains::named(const std::string& parameter, const Value& tensor) const {
  const auto found = by_name_.find(parameter);
  const bool fits = found != by_name_.end() && chains_[at(found->second)].dims == tensor.type.dims;
  return fits ? found->second : int{kNone};
}

// Sums over the batch that are gradients or become such states through elementwise ops, and
// constants that do; of several ops where one rank has all.
void Chains::find_sources() {
  std::vector<int> becomes(chain_of_.size(), kNone);
  for (auto& [state, next] : p_.updates()) becomes[at(next)] = chain_of_[at(state)];
  for (size_t i = p_.ops().size(); i-- > 0;) {
    const Op& op = p_.ops()[i];
    if (op.phase != Phase::update || op.out.empty()) continue;
    const bool sum = is_exchanged_total(p_, op);
    int chain = kNone;
    if (sum && p_.value(op.in[0]).role == Role::grad)
      chain = named(p_.value(op.in[0]).name, p_.value(op.out[0]));
    for (ValueId v : op.out)
      if (chain == kNone) chain = becomes[at(v)];
    if (op.in.empty() || (sum && !op.attrs.count("whole"))) chain_of_[at(op.out[0])] = chain;
    if (chain == kNone) continue;
    const bool apart = cut_inside(*chains_[at(chain)].cuts);
    for (ValueId v : op.in)
      if (!p_.type(v).dims.empty() &&
          (!apart || (is_elementwise(op) && p_.type(v).dims == p_.type(op.out[0]).dims)))
        becomes[at(v)] = std::max(becomes[at(v)], chain);
  }
}

// Has what an op makes lie as what it reads does; returns whether it needs that whole instead.
bool Chains::follow(const Op& op) {
  int chain = kNone;
  bool whole = is_whole_reduce(p_, op) || op.attrs.count("whole");
  bool pieces = is_elementwise(op);
  for (ValueId v : op.in) {
    const int its = chain_of_[at(v)];
    const bool scalar = p_.type(v).dims.empty();
    pieces = pieces && (scalar ? its == kNone : p_.type(v).dims == p_.type(op.out[0]).dims);
    if (its == kNone) continue;
    if (chain == kNone) chain = its;
    whole = whole || !alike(*chains_[at(chain)].cuts, *chains_[at(its)].cuts);
  }
  if (chain == kNone) return false;
  pieces = pieces && std::none_of(op.out.begin(), op.out.end(),
                                  [&](ValueId v) { return p_.type(v).dims.empty(); });
  if (whole || (!pieces && cut_inside(*chains_[at(chain)].cuts))) return true;
  for (ValueId v : op.out) chain_of_[at(v)] = chain;
  return false;
}

const Chain* Chains::of(ValueId v) const {
  int found = chain_of_[at(v)];
  return found == kNone ? nullptr : &chains_[at(found)];
}

}  // namespace orrery
