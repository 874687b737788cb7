// SPDX-License-Identifier: Apache-2.0
//
// Values of one rank alone (program/ops/shape.cpp has what makes them): what is computed of them is
// computed there.
#include "partition/cut/pass.h"

namespace orrery {

// Where all inputs that one rank alone has are one and the same rank's: which; else kNone.
int CutPass::owner_among(const Op& op) const {
  int found = kNone;
  for (ValueId v : op.in) {
    if (cut(v).kind != Cut::owned) continue;
    if (found != kNone && found != cut(v).dim) return kNone;
    found = cut(v).dim;
  }
  return found;
}

// What the others have is read whole, which takes all ranks.
void CutPass::run_at_owner(const Op& op, int owner) {
  Op copy = op;
  for (size_t i = 0; i < op.in.size(); ++i) {
    const bool here = cut(op.in[i]).kind == Cut::owned;
    if (!here) copy.in[i] = read(op.in[i], Cut{});
    if (here && owner == me.rank) copy.in[i] = known(op.in[i]);
  }
  alone_ = true;
  for (ValueId v : op.out) become(v, owner == me.rank ? v : kNone, Cut::of_one(owner));
  if (owner == me.rank) p.append(std::move(copy));
}

// A copy for all ranks.
ValueId CutPass::from_owner(ValueId v) {
  const Value& value = from.value(v);
  const int owner = cut(v).dim;
  ValueId x = here_[static_cast<size_t>(v)];
  if (x == kNone) {
    x = p.constant(0, value.type.dtype, value.type.dims);
    Value& copy = p.mutable_value(x);
    copy.batch = value.batch, copy.batch_dim = value.batch_dim;
  }
  return broadcast(p, x, owner, me);
}

}  // namespace orrery
