// SPDX-License-Identifier: Apache-2.0
#include "column_sums.h"

#include <algorithm>

#include "../compiler.h"

namespace orr_cuda {
FoldPlan ColumnSums::plan_of(const orr_op& op, const orr_tensor& rows, int arrays) {
  const int64_t columns = rows.dims[rows.rank - 1];
  return FoldPlan(op, 1, orr::elements(rows) / columns, columns, arrays, ORR_SUM_ROWS);
}

ColumnSums::ColumnSums(const orr_op& op, const FoldPlan& plan, int32_t dtype, bool rounded,
                       bool stores)
    : walk_(op, plan.columns),
      plan_(plan),
      fold_(plan, dtype, kFoldSum, rounded),
      inputs_(size_t(op.n_in)),
      stores_(stores),
      addresses_(walk_.strides.size()) {
  const CUmodule module =
      module_of(sums_source(op, walk_, {plan.columns, plan.arrays, dtype, stores}));
  single_ = function_of(module, "sums_single");
  if (walk_.vector > 1) vector_ = function_of(module, "sums_vector");
}

void ColumnSums::launch(CUstream stream, const CUdeviceptr* in, const CUdeviceptr* out,
                        const Buffers& sums) {
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
