// SPDX-License-Identifier: Apache-2.0
#include "partition/shard/sharded_params.h"

#include <algorithm>
#include <map>
#include <set>

#include "partition/shared/blocks.h"
#include "program/op.h"
#include "program/state.h"

namespace orrery {
namespace {

size_t at(int32_t i) { return static_cast<size_t>(i); }

// Whether this op completes a sum over the batch by adding the summands of all ranks of the axis.
// A sum that is completed over other axes (Op::completed_over, which a strategy's hook sets)
// does not count: it stays whole.
bool is_exchanged_total(const Program& p, const Op& op, const std::string& axis) {
  if (op.kind != "total" || p.value(op.in[0]).batch() != Batch::partial) return false;
  const OpId maker = p.value(op.in[0]).producer;
  if (maker == kNone) return false;
  const Op& sum = p.ops()[at(maker)];
  return sum.completed_over.value_or(axis) == axis &&
         std::any_of(sum.in.begin(), sum.in.end(),
                     [&](ValueId v) { return p.value(v).batch() == Batch::sharded; });
}

bool is_elementwise(const Op& op) {
  static const std::set<std::string> kinds = {"pointwise", "all_reduce", "permute", "broadcast",
                                              "vary"};
  return kinds.count(op.kind) > 0;
}

// Whether the same ranks have the same parts of both. So it is for tensors of any two sizes if one
// rank has both whole.
bool lie_alike(const Dims& one, const Dims& other) {
  const auto owner = [](const Dims& cuts) {
    return std::find(cuts.begin(), cuts.end(), cuts.back()) - cuts.begin();
  };
  return &one == &other || (!cut_inside(one) && !cut_inside(other) && owner(one) == owner(other));
}

}  // namespace

ShardedParams::ShardedParams(const Program& p, const std::vector<Unit>& units,
                             const std::string& axis)
    : p_(p), param_of_(p.values().size(), kNone) {
  find_states(units);
  find_sources(axis);
  for (const Op& op : p.ops())
    gathers_.push_back(op.phase == Phase::update && op.kind != "total" && follow(op));
}

// Lists the sharded parameters. To each belong its states of the same shape, such as momentum.
void ShardedParams::find_states(const std::vector<Unit>& units) {
  std::map<std::string, std::pair<int, Dims>> by_name;  // index in params_, dims
  for (size_t u = 0; u < units.size(); ++u)
    for (size_t m = 0; m < units[u].params.size(); ++m) {
      const Value& param = p_.value(units[u].params[m]);
      by_name[param.name] = {static_cast<int>(params_.size()), param.type.dims};
      params_.push_back({u, m, &units[u].shards[m]});
    }
  for (size_t v = 0; v < param_of_.size(); ++v) {
    const Value& value = p_.values()[v];
    if (!value.state) continue;
    const auto at = by_name.find(value.role == Role::param ? value.name : value.state->beside);
    if (at != by_name.end() && at->second.second == value.type.dims)
      param_of_[v] = at->second.first;
  }
}

// Walks the update backwards from the new values of states. What such a value is computed from by
// elementwise ops belongs to the same parameter, back to the sums over the batch, constants and
// other states. If one rank has the parameter whole, the ops may be any.
void ShardedParams::find_sources(const std::string& axis) {
  std::vector<int> becomes(param_of_.size(),
                           kNone);  // by value: the parameter whose state it becomes
  for (auto& [state, next] : p_.updates()) becomes[at(next)] = param_of_[at(state)];
  for (size_t i = p_.ops().size(); i-- > 0;) {
    const Op& op = p_.ops()[i];
    if (op.phase != Phase::update) continue;
    int param = kNone;
    for (ValueId v : op.out) param = std::max(param, becomes[at(v)]);
    if (param == kNone) continue;
    // What arrives from another stage is received on every rank, as it is sent on every one there.
    const bool made_here = op.in.empty() && !is_exchange(op.kind);
    if (made_here || is_exchanged_total(p_, op, axis)) param_of_[at(op.out[0])] = param;
    const bool in_pieces = cut_inside(*params_[at(param)].cuts);
    for (ValueId v : op.in)
      if (!p_.type(v).dims.empty() && becomes[at(v)] == kNone &&
          (!in_pieces || (is_elementwise(op) && p_.type(v).dims == p_.type(op.out[0]).dims)))
        becomes[at(v)] = param;
  }
  add_remaining_states(becomes);
}

// Of the states that belong to no parameter yet, those that become part of a parameter's state
// belong to it, unless forward or backward reads them, and so needs them whole.
void ShardedParams::add_remaining_states(const std::vector<int>& becomes) {
  std::vector<char> read_before(param_of_.size());  // by forward or backward
  for (const Op& op : p_.ops())
    if (op.phase != Phase::update)
      for (ValueId v : op.in) read_before[at(v)] = true;
  for (size_t v = 0; v < becomes.size(); ++v)
    if (const Value& value = p_.values()[v];
        value.state && value.role != Role::param && !read_before[v] && param_of_[v] == kNone)
      param_of_[v] = becomes[v];
}

// What the op makes belongs to the parameter that its inputs belong to. Returns whether the op
// needs whole tensors instead.
bool ShardedParams::follow(const Op& op) {
  int param = kNone;
  bool needs_whole = is_whole_reduce(p_, op) || op.reads_whole || op.kind == "unshard" ||
                     op.kind == "send";  // to a rank that may have no shard
  bool works_on_shards = is_elementwise(op);
  for (ValueId v : op.in) {
    const int its = param_of_[at(v)];
    const bool scalar = p_.type(v).dims.empty();
    works_on_shards =
        works_on_shards && (scalar ? its == kNone : p_.type(v).dims == p_.type(op.out[0]).dims);
    if (its == kNone) continue;
    if (param == kNone) param = its;
    needs_whole = needs_whole || !lie_alike(*params_[at(param)].cuts, *params_[at(its)].cuts);
  }
  if (param == kNone) return false;
  works_on_shards = works_on_shards && std::none_of(op.out.begin(), op.out.end(), [&](ValueId v) {
                      return p_.type(v).dims.empty();
                    });
  if (needs_whole || (!works_on_shards && cut_inside(*params_[at(param)].cuts))) return true;
  for (ValueId v : op.out) param_of_[at(v)] = param;
  return false;
}

const ShardedParam* ShardedParams::of(ValueId v) const {
  int found = param_of_[at(v)];
  return found == kNone ? nullptr : &params_[at(found)];
}

}  // namespace orrery
