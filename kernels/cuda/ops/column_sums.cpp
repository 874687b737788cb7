// SPDX-License-Identifier: Apache-2.0
#include "column_sums.h"

#include <algorithm>

#include "../compiler.h"

namespace orr_cuda {

Terms::Terms(const orr_tensor& rows) : out_(rows), wide_(accumulator(rows.dtype)) {
  out_.dtype = wide_;
}

int32_t Terms::push(int32_t fn, int32_t dtype, int32_t a, int32_t b) {
  instrs_.push_back({fn, dtype, a, b, 0, 0, 0});
  return int32_t(instrs_.size()) - 1;
}

int32_t Terms::input(const orr_tensor& x) {
  in_.push_back(x);
  return push(ORR_FN_CAST, push(ORR_FN_INPUT, x.dtype, int32_t(in_.size()) - 1, 0), 0);
}

orr_op Terms::op() {
  outs_.assign(stored_.size(), out_);
  expr_ = {sizeof expr_,   int32_t(instrs_.size()), int32_t(stored_.size()), 0,
           instrs_.data(), stored_.data()};
  return {sizeof(orr_op),
          int32_t(in_.size()),
          int32_t(outs_.size()),
          0,
          "pointwise",
          in_.data(),
          outs_.data(),
          nullptr,
          &expr_,
          ""};
}

ColumnSums::ColumnSums(const orr_op& op, const FoldPlan& plan, int32_t dtype, int32_t fn,
                       bool rounded, bool stores)
    : walk_(op, plan.columns),
      plan_(plan),
      fold_(plan, dtype, fn, rounded),
      inputs_(size_t(op.n_in)),
      stores_(stores),
      addresses_(walk_.strides.size()) {
  if (plan.segments * plan.columns == 0) return;
  const CUmodule module =
      module_of(sums_source(op, walk_, {plan.columns, plan.arrays, dtype, fn, stores}));
  single_ = function_of(module, "sums_single");
  if (walk_.vector > 1) vector_ = function_of(module, "sums_vector");
}

void ColumnSums::launch(CUstream stream, const CUdeviceptr* in, const CUdeviceptr* out,
                        const Buffers& sums) {
  if (!single_) return;
  std::copy_n(in, inputs_, addresses_.begin());
  if (stores_) std::copy_n(out, addresses_.size() - inputs_, addresses_.begin() + long(inputs_));
  const FoldOutput to = fold_.first(sums);
  SumRows rows{{to.array[0], to.array[1], to.array[2]},
               uint64_t(plan_.segments),
               uint64_t(plan_.length),
               uint64_t(plan_.entries),
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
