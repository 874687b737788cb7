// SPDX-License-Identifier: Apache-2.0
#include "column_sums.h"

#include <algorithm>

#include "../modules.h"

namespace orr_cuda {

int32_t Terms::push(int32_t fn, int32_t dtype, int32_t a, int32_t b) {
  instrs_.push_back({fn, dtype, a, b, 0, 0, 0});
  return int32_t(instrs_.size()) - 1;
}

int32_t Terms::input(const orr_tensor& x) {
  in_.push_back(x);
  return push(ORR_FN_CAST, push(ORR_FN_INPUT, x.dtype, int32_t(in_.size()) - 1, 0), 0);
}

orr_op Terms::op(const std::vector<int32_t>& stored) {
  stored_ = stored, outs_.assign(stored.size(), out_);
  const auto n = int32_t(stored.size());
  expr_ = {sizeof expr_, int32_t(instrs_.size()), n, 0, instrs_.data(), stored_.data()};
  return {sizeof(orr_op), int32_t(in_.size()), n,       0,      "pointwise",
          in_.data(),     outs_.data(),        nullptr, &expr_, "",
          nullptr};
}

orr_tensor accumulators(orr_tensor x) {
  x.dtype = accumulator(x.dtype);
  return x;
}

ColumnSums::ColumnSums(const orr_op& op, const FoldPlan& plan, int32_t dtype, int32_t fn,
                       bool rounded, const Results& results)
    : walk_(op, plan.columns),
      plan_(plan),
      fold_(plan, dtype, fn, rounded),
      inputs_(size_t(op.n_in)),
      stored_(results.given ? size_t(op.n_out) : 0),
      addresses_(walk_.strides.size()) {
  if (plan.segments * plan.columns == 0) return;
  const uint64_t stored = results.given ? ~results.unread : 0;
  const CUmodule module =
      module_of(sums_source(op, walk_, {plan.columns, plan.arrays, dtype, fn, stored}));
  single_ = function_of(module, "sums_single");
  if (walk_.vector > 1) vector_ = function_of(module, "sums_vector");
}

void ColumnSums::launch(CUstream stream, const Buffers& b) {
  if (!single_) return;
  std::copy_n(b.in, inputs_, addresses_.begin());
  std::copy_n(b.out, stored_, addresses_.begin() + long(inputs_));
  const Buffers sums{b.in, b.out + stored_, b.workspace};
  const FoldOutput to = fold_.first(sums);
  SumRows rows{to, uint64_t(plan_.segments), uint64_t(plan_.length), uint64_t(plan_.entries),
               to.rounded};
  const bool vector = vector_ && walk_.aligned(addresses_);
  const int64_t width = vector ? walk_.vector : 1,
                threads = plan_.segments * plan_.entries * (plan_.columns / width);
  void* arguments[] = {addresses_.data(), &rows};
  enqueue_packed(stream, vector ? vector_ : single_,
                 {unsigned((threads + pointwise_block - 1) / pointwise_block)}, {pointwise_block},
                 0, arguments);
  fold_.rest(stream, sums);
}

}  // namespace orr_cuda
