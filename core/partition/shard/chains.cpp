// SPDX-License-Identifier: Apache-2.0
#include "partition/shard/chains.h"

#include <algorithm>
#include <map>
#include <set>

#include "partition/shared/blocks.h"
#include "program/state.h"

namespace orrery {
namespace {

size_t at(int32_t i) { return static_cast<size_t>(i); }

// Whether this op completes a sum over the batch by adding the summands of all ranks of the axis.
// A sum that a hook completes over some of them ("among") does not count: it stays whole.
bool is_exchanged_total(const Program& p, const Op& op, const std::string& axis) {
  if (op.kind != "total" || p.value(op.in[0]).batch() != Batch::partial) return false;
  const OpId maker = p.value(op.in[0]).producer;
  if (maker == kNone) return false;
  const Op& sum = p.ops()[at(maker)];
  return attr_text(sum.attrs, "among", axis) == axis &&
         std::any_of(sum.in.begin(), sum.in.end(),
                     [&](ValueId v) { return p.value(v).batch() == Batch::sharded; });
}

bool is_elementwise(const Op& op) {
  static const std::set<std::string> kinds = {"pointwise", "all_reduce", "permute", "broadcast",
                                              "vary"};
  return kinds.count(op.kind) > 0;
}

// Whether the same ranks have the same parts of both. Tensors of any sizes are alike if one
// coordinate holds both whole.
bool alike(const Dims& one, const Dims& other) {
  const auto owner = [](const Dims& cuts) {
    return std::find(cuts.begin(), cuts.end(), cuts.back()) - cuts.begin();
  };
  return &one == &other || (!cut_inside(one) && !cut_inside(other) && owner(one) == owner(other));
}

}  // namespace

Chains::Chains(const Program& p, const std::vector<Unit>& units, const std::string& axis)
    : p_(p), chain_of_(p.values().size(), kNone) {
  find_states(units);
  find_sources(axis);
  for (const Op& op : p.ops())
    gathers_.push_back(op.phase == Phase::update && op.kind != "total" && follow(op));
}

// Begins a chain for each sharded parameter, with the states of its shape that lie beside it.
void Chains::find_states(const std::vector<Unit>& units) {
  std::map<std::string, std::pair<int, Dims>> by_name;  // of parameters: chain, dims
  for (size_t u = 0; u < units.size(); ++u)
    for (size_t m = 0; m < units[u].params.size(); ++m) {
      const Value& param = p_.value(units[u].params[m]);
      by_name[param.name] = {static_cast<int>(chains_.size()), param.type.dims};
      chains_.push_back({u, m, &units[u].shards[m]});
    }
  for (size_t v = 0; v < chain_of_.size(); ++v) {
    const Value& value = p_.values()[v];
    if (!value.state) continue;
    const auto at = by_name.find(value.role == Role::param ? value.name : value.state->beside);
    if (at != by_name.end() && at->second.second == value.type.dims)
      chain_of_[v] = at->second.first;
  }
}

// Adds to the chains the sums over the batch, constants and other states from which their states'
// new values are computed by elementwise ops; if one rank holds the chain whole, by any ops.
void Chains::find_sources(const std::string& axis) {
  std::vector<int> becomes(chain_of_.size(), kNone);
  std::vector<char> read_before(chain_of_.size());  // read by forward or backward, and so whole
  for (auto& [state, next] : p_.updates()) becomes[at(next)] = chain_of_[at(state)];
  for (size_t i = p_.ops().size(); i-- > 0;) {
    const Op& op = p_.ops()[i];
    if (op.phase != Phase::update) {
      for (ValueId v : op.in) read_before[at(v)] = true;
      continue;
    }
    int chain = kNone;
    for (ValueId v : op.out) chain = std::max(chain, becomes[at(v)]);
    if (chain == kNone) continue;
    if (op.in.empty() || is_exchanged_total(p_, op, axis)) chain_of_[at(op.out[0])] = chain;
    const bool apart = cut_inside(*chains_[at(chain)].cuts);
    for (ValueId v : op.in)
      if (!p_.type(v).dims.empty() && becomes[at(v)] == kNone &&
          (!apart || (is_elementwise(op) && p_.type(v).dims == p_.type(op.out[0]).dims)))
        becomes[at(v)] = chain;
  }
  for (size_t v = 0; v < becomes.size(); ++v)
    if (const Value& value = p_.values()[v];
        value.state && value.role != Role::param && !read_before[v] && chain_of_[v] == kNone)
      chain_of_[v] = becomes[v];
}

// Adds what the op makes to the chain of what it reads. Returns whether the op needs whole tensors
// instead.
bool Chains::follow(const Op& op) {
  int chain = kNone;
  bool whole = is_whole_reduce(p_, op) || op.attrs.has("whole") || op.kind == "unshard";
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
