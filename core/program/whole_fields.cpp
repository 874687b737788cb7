// SPDX-License-Identifier: Apache-2.0
#include "program/whole_fields.h"

#include <algorithm>
#include <set>

#include "program/op.h"

namespace orrery {
namespace {

// Whether the op computes the same of the whole batch at once as of its microbatches.
bool is_plain(const Op& op) {
  static const std::set<std::string> others = {"batch_gather",   "batch_slice",  "batch_sum",
                                               "microbatch_sum", "sample_index", "user_gradient"};
  return !others.count(op.kind) && !names_axis(op.kind) &&
         std::none_of(op.expr.instrs.begin(), op.expr.instrs.end(),
                      [](const orr_instr& i) { return i.fn == ORR_FN_RAND; });
}

}  // namespace

ValueId WholeFields::of(ValueId v) {
  if (p_.value(v).batch() == Batch::none) return v;
  const auto [at, fresh] = known_.emplace(v, kNone);
  if (!fresh) return at->second;
  const Phase phase = p_.phase();
  const OpId twin = p_.twin();
  p_.set_phase(Phase::forward), p_.set_twin(kNone);
  const ValueId found = p_.value(v).producer == kNone ? given(v) : computed(v);
  p_.set_phase(phase), p_.set_twin(twin);
  return known_[v] = found;
}

// A field of the batch. The whole batch has no rows that pad it, so that each sample weighs 1.
ValueId WholeFields::given(ValueId v) {
  const Value field = p_.value(v);
  if (field.name == "$weight") return p_.constant(1, field.type.dtype, field.type.dims);
  if (field.role != Role::batch || field.name.starts_with("$")) return kNone;
  return p_.whole_batch_input(field.name, field.type);
}

ValueId WholeFields::computed(ValueId v) {
  Op op = p_.ops()[static_cast<size_t>(p_.value(v).producer)];
  const auto is_param = [&](ValueId x) { return p_.value(x).role == Role::param; };
  if (!is_plain(op) || std::any_of(op.in.begin(), op.in.end(), is_param)) return kNone;
  for (ValueId& x : op.in)
    if ((x = of(x)) == kNone) return kNone;
  if (op.kind == "total" || op.kind == "stop_gradient") return op.in[0];
  if (op.kind == "batch_mean") return p_.pointwise(ORR_FN_DIV, {op.in[0], op.in[1]});
  const std::vector<ValueId> made = op.out;
  op.out.clear(), op.phase = Phase::forward, op.twin = kNone;
  p_.append(std::move(op));
  const std::vector<ValueId> out = p_.ops().back().out;
  for (size_t j = 0; j < made.size(); ++j) known_[made[j]] = out[j];
  return known_.at(v);
}

}  // namespace orrery
