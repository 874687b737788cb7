// SPDX-License-Identifier: Apache-2.0
//
// Puts the casts of states that forward reads (16-bit copies of the parameters) before all other
// ops of a step, each cast once. Side by side they are one launch where the kernels can merge them.
#include <map>
#include <set>
#include <tuple>

#include "lower/lower.h"

namespace orrery {
namespace {

bool is_cast_of_state(const Program& p, const Op& op) {
  if (op.kind != "pointwise" || op.phase != Phase::forward || op.in.size() != 1) return false;
  const Value& x = p.value(op.in[0]);
  return op.expr.instrs.size() == 2 && op.expr.instrs[1].fn == ORR_FN_CAST && x.producer == kNone &&
         x.state && x.tier == Tier::device;
}

}  // namespace

void cast_first(LocalProgram& local) {
  Program& p = local.program;
  if (p.updates().empty()) return;  // an evaluation needs no cast for longer than its reader runs
  std::set<ValueId> pinned;
  for (auto& [state, next] : p.updates()) pinned.insert(next);
  for (auto& [name, id] : p.outputs()) pinned.insert(id);
  std::map<std::tuple<ValueId, int32_t, int32_t>, ValueId> casts;  // of (state, dtype, stage)
  std::map<ValueId, ValueId> same;
  std::vector<Op> first, rest;
  for (Op& op : p.mutable_ops()) {
    for (ValueId& v : op.in)
      if (const auto at = same.find(v); at != same.end()) v = at->second;
    if (!is_cast_of_state(p, op)) {
      rest.push_back(std::move(op));
      continue;
    }
    const ValueId out = op.out[0];
    const auto [at, fresh] = casts.try_emplace({op.in[0], op.expr.instrs[1].dtype, op.stage}, out);
    if (fresh || pinned.count(out))
      first.push_back(std::move(op));
    else
      same[out] = at->second;
  }
  p.mutable_ops().clear();
  for (std::vector<Op>* ops : {&first, &rest})
    for (Op& op : *ops) p.append(std::move(op));
}

}  // namespace orrery
