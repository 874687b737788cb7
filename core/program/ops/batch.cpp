// SPDX-License-Identifier: Apache-2.0
//
// Ops about the batch as a whole. batch_mean(sum, weight) is the ratio of the two totals, known when
// all leaves are done; total(x) is the sum of x's leaves over all ranks; stop_gradient is the
// identity that cotangents do not pass. Lowering expands the first two.
#include <stdexcept>

#include "program/op.h"

namespace orrery {
namespace {

std::vector<Type> infer_first(const OpArgs& args) { return {args.in[0]}; }

std::vector<Type> infer_mean(const OpArgs& args) {
  if (args.in[0] != args.in[1])
    throw std::invalid_argument("sum and weight differ: " + to_string(args.in[0]) + " and " +
                                to_string(args.in[1]));
  return {args.in[0]};
}

Sharding elementwise(const OpArgs& args, const std::vector<Type>& out) {
  Sharding s;
  std::vector<int> f;
  for (size_t i = 0; i < out[0].dims.size(); ++i) f.push_back(static_cast<int>(i));
  s.in.assign(args.in.size(), f), s.out = {f};
  return s;
}

// Unnormalised (design section 4): the one division by the summed weight comes at the end.
void mean_gradient(Gradient& g, const Op& op) {
  if (g.wanted(op.in[0])) g.add(op.in[0], g.dy());
}

Cost no_cost(const OpArgs&, const std::vector<Type>&) { return {}; }

}  // namespace

extern const OpDef batch_mean_op{"batch_mean", infer_mean, elementwise, mean_gradient, no_cost,
                                 nullptr};
extern const OpDef total_op{"total", infer_first, elementwise, nullptr, no_cost, nullptr};
extern const OpDef stop_gradient_op{"stop_gradient", infer_first, elementwise, nullptr, no_cost,
                                    nullptr};

}  // namespace orrery
