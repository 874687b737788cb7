// SPDX-License-Identifier: Apache-2.0
//
// Completes values of the whole batch that samples read. A sum that an op makes of samples is
// completed right there. The ops from such sums to the value that is read are repeated on the
// completed sums, so that they have the gradients of ordinary functions. (The gradient of
// batch_mean is that of a loss, which is divided by the summed weight at the end.)
#include <algorithm>

#include "program/program.h"

namespace orrery {

static bool is_sum(const Program& p, ValueId v) {
  return p.value(v).batch() == Batch::partial || p.value(v).batch() == Batch::mean;
}

ValueId Program::completed(ValueId v) {
  if (!is_sum(*this, v)) return v;
  if (auto known = completed_.find(v); known != completed_.end()) return known->second;
  Op op = ops_[static_cast<size_t>(value(v).producer)];
  const bool of_samples = std::any_of(
      op.in.begin(), op.in.end(), [&](ValueId x) { return value(x).batch() == Batch::sharded; });
  if (of_samples && op.kind != "user_gradient") return completed_[v] = add1("batch_sum", {v});
  for (ValueId& x : op.in) x = completed(x);
  if (op.kind == "batch_mean") return completed_[v] = pointwise(ORR_FN_DIV, {op.in[0], op.in[1]});
  const std::vector<ValueId> made = op.out;
  op.out.clear(), op.phase = phase_, op.site = site_, op.twin = kNone;
  append(std::move(op));
  for (size_t j = 0; j < made.size(); ++j) completed_[made[j]] = ops_.back().out[j];
  return completed_.at(v);
}

void Program::complete_for_samples(Op& op) {
  const bool samples = std::any_of(op.in.begin(), op.in.end(),
                                   [&](ValueId v) { return value(v).batch() == Batch::sharded; });
  if (!samples || op.kind == "user_gradient") return;
  for (ValueId& v : op.in) v = completed(v);
}

}  // namespace orrery
