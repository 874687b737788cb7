// SPDX-License-Identifier: Apache-2.0
#include "lower/average.h"

#include <map>

#include "program/op.h"
#include "program/state.h"

namespace orrery {
namespace {

// Sums over the batch a second time, over the rank's own leaves, each right after the first; what
// that was for may die.
class Loner {
 public:
  explicit Loner(Program& p) : p_(p) {}

  void run() {
    from_.swap(p_.mutable_ops());
    twice_.resize(from_.size());
    for (const Op& op : from_)
      if (is_alone(op)) need(op.in[0]);
    std::vector<OpId> moved(from_.size(), kNone);
    for (size_t i = 0; i < from_.size(); ++i) {
      Op op = from_[i];
      if (op.twin != kNone) op.twin = moved[static_cast<size_t>(op.twin)];
      if (is_alone(op)) op.in[0] = own_.at(op.in[0]), op.attrs["alone"] = int64_t{1};
      moved[i] = static_cast<OpId>(p_.ops().size());
      p_.append(std::move(op));
      if (twice_[i]) repeat(from_[i]);
    }
  }

 private:
  bool is_alone(const Op& op) const {
    return op.kind == "total" && op.phase == Phase::update &&
           p_.value(op.in[0]).batch == Batch::partial;
  }

  // Producers as they were numbered in from_.
  void need(ValueId sum) {
    size_t maker = static_cast<size_t>(p_.value(sum).producer);
    if (twice_[maker]) return;
    twice_[maker] = true;
    for (ValueId v : from_[maker].in)
      if (p_.value(v).batch == Batch::partial) need(v);
  }

  void repeat(Op op) {
    op.twin = kNone, op.attrs["alone"] = int64_t{1};
    for (ValueId& v : op.in)
      if (p_.value(v).batch == Batch::partial) v = own_.at(v);
    for (ValueId& v : op.out) v = own_[v] = like(v);
    p_.append(std::move(op));
  }

  ValueId like(ValueId v) {
    const Value original = p_.value(v);
    ValueId made = p_.new_value(original.type, original.role, original.name);
    Value& copy = p_.mutable_value(made);
    copy.batch = original.batch, copy.batch_dim = original.batch_dim, copy.site = original.site;
    return made;
  }

  Program& p_;
  std::vector<Op> from_;
  std::vector<char> twice_;
  std::map<ValueId, ValueId> own_;
};

}  // namespace

void train_alone(Program& p) { Loner(p).run(); }

Program averaging_program(const Program& trained, const Spread& spread) {
  Program p;
  p.set_phase(Phase::update);
  const Averaging& how = spread.averaging;
  for (auto& [state, next] : trained.updates()) {
    const Value& v = trained.value(state);
    if (!is_real(v.type.dtype) || (v.role != Role::param && !how.states)) continue;
    p.set_site(v.state->site);
    ValueId mine = p.state_value(v.state);
    p.mutable_value(mine).part = v.part, p.mutable_value(mine).type = v.type;
    ValueId sum = p.add1("all_reduce", {mine},
                         {{"axis", how.axis}, {"cause", how.cause}, {"fn", std::string("sum")}});
    p.update(mine, p.pointwise(ORR_FN_MUL, {sum, Operand::number(1.0 / spread.size_of(how.axis))}));
  }
  return p;
}

Spread averaging_spread(Spread spread) {
  spread.batch_axis.clear(), spread.tensor = {};
  return spread;
}

}  // namespace orrery
