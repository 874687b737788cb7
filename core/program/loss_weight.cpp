// SPDX-License-Identifier: Apache-2.0
#include "program/loss_weight.h"

#include <set>
#include <utility>

#include "program/op.h"
#include "program/same_work.h"

namespace orrery {
namespace {

// The op that makes v; null for a value that is given.
const Op* maker_of(const Program& p, ValueId v) {
  const OpId maker = p.value(v).producer;
  return maker == kNone ? nullptr : &p.ops()[static_cast<size_t>(maker)];
}

// The sum of weights that a weight is, which means of another dtype read by a cast.
ValueId uncast(const Program& p, ValueId weight) {
  const Op* op = maker_of(p, weight);
  const bool widens =
      op && op->kind == "pointwise" && op->expr.instrs.size() == 2 &&
      op->expr.instrs.back().fn == ORR_FN_CAST &&
      orr_dtype_bytes(p.type(weight).dtype) > orr_dtype_bytes(p.type(op->in[0]).dtype);
  return widens ? unrepeated(p, op->in[0]) : weight;
}

// Compares how two values are made. Pairs that were found equal are not compared again.
class Comparison {
 public:
  explicit Comparison(const Program& p) : p_(p) {}

  bool same(ValueId a, ValueId b) {
    if (a == b || known_.count({a, b})) return true;
    const Op *x = maker_of(p_, a), *y = maker_of(p_, b);
    if (!x || !y || p_.type(a) != p_.type(b) || p_.value(a).out_index != p_.value(b).out_index ||
        !is_same_work(*x, *y) || x->in.size() != y->in.size())
      return false;
    for (size_t i = 0; i < x->in.size(); ++i)
      if (!same(x->in[i], y->in[i])) return false;
    known_.insert({a, b});
    return true;
  }

 private:
  const Program& p_;
  std::set<std::pair<ValueId, ValueId>> known_;
};

}  // namespace

ValueId unrepeated(const Program& p, ValueId weight) {
  for (const Op* op = maker_of(p, weight); op; op = maker_of(p, weight)) {
    if (op->kind != "pointwise" || op->expr.instrs.back().fn != ORR_FN_INPUT) break;
    weight = op->in[0];
  }
  return weight;
}

bool is_same_weight(const Program& p, ValueId a, ValueId b) {
  return Comparison(p).same(uncast(p, unrepeated(p, a)), uncast(p, unrepeated(p, b)));
}

}  // namespace orrery
