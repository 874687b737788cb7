// SPDX-License-Identifier: Apache-2.0
//
// Values that one rank owns (ops in program/ops/shape.cpp make them). An op that reads them runs on
// that rank only.
#include "partition/cut/pass.h"

namespace orrery {

// The coordinate that owns all owned inputs of the op; kNone if there is none, or several.
int CutPass::owner_among(const Op& op) const {
  int found = kNone;
  for (ValueId v : op.in) {
    if (cut(v).kind != Placement::owned) continue;
    if (found != kNone && found != cut(v).owner()) return kNone;
    found = cut(v).owner();
  }
  return found;
}

// Runs the op on its owner. Inputs that are not owned are read whole, which all ranks take part in.
void CutPass::run_at_owner(const Op& op, int owner) {
  Op copy = op;
  for (size_t i = 0; i < op.in.size(); ++i) {
    const bool here = cut(op.in[i]).kind == Placement::owned;
    if (!here) copy.in[i] = read(op.in[i], Placement{});
    if (here && owner == me.rank) copy.in[i] = known(op.in[i]);
  }
  alone_ = true;
  for (ValueId v : op.out) become(v, owner == me.rank ? v : kNone, Placement::of_one(owner));
  if (owner == me.rank) p.append(std::move(copy));
}

// Copies an owned value to all ranks.
ValueId CutPass::from_owner(ValueId v) {
  const Value& value = from.value(v);
  const int owner = cut(v).owner();
  ValueId x = here_[static_cast<size_t>(v)];
  if (x == kNone) {
    x = p.constant(0, value.type.dtype, value.type.dims);
    p.mutable_value(x).layout = value.layout;
  }
  return broadcast(p, x, owner, me);
}

}  // namespace orrery
