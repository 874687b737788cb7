// SPDX-License-Identifier: Apache-2.0
#include "lower/wholes.h"

#include <algorithm>

#include "program/op.h"
#include "program/state.h"

namespace orrery {
namespace {

bool joins(const Op& op) { return op.kind == "concat" || op.kind == "reshape"; }

// Whether v consists of parameters, or of copies that ops compute with.
bool is_weight(const Program& p, ValueId v) {
  const Value& value = p.value(v);
  if (value.state) return value.role == Role::param || value.state->copy_of;
  if (value.producer == kNone) return false;
  const Op& op = p.ops()[static_cast<size_t>(value.producer)];
  return joins(op) &&
         std::all_of(op.in.begin(), op.in.end(), [&](ValueId x) { return is_weight(p, x); });
}

}  // namespace

std::vector<const char*> names_of_wholes(const Program& p) {
  std::vector<const char*> names(p.values().size(), nullptr);
  const auto name = [&](ValueId v) -> const char*& { return names[static_cast<size_t>(v)]; };
  for (size_t i = p.ops().size(); i-- > 0;) {
    const Op& op = p.ops()[i];
    if (op.phase == Phase::update) continue;
    if (op.kind == "all_gather" && !op.in.empty() && is_weight(p, op.in[0]))
      name(op.out[0]) = kGatheredWeights;
    if (op.kind == "reduce_scatter" && op.exchange().each) name(op.in[0]) = kFullGradients;
    if (joins(op) && name(op.out[0]))  // of what it joins there may be no copy of its own
      for (ValueId v : op.in) name(v) = name(op.out[0]);
  }
  return names;
}

}  // namespace orrery
