// SPDX-License-Identifier: Apache-2.0
//
// reduce: sums in the order of ops.h, maxima and minima.
#include <orrery/sdk/kind_checks.hpp>

#include "column_sums.h"

namespace orr_cuda {
namespace {

int fold_of(const orr_op& op) {
  const std::string_view name = orr::attr_text(op, "fn", "");
  if (name == "sum") return kFoldSum;
  if (name == "sumsq") return kFoldSumOfSquares;
  return name == "max" ? kFoldMax : kFoldMin;
}

FoldPlan plan_of(const orr_op& op) {
  const orr_tensor& x = op.in[0];
  const int64_t block = x.dims[2] == 1 ? ORR_SUM_BLOCK : ORR_SUM_ROWS;
  return FoldPlan(op, x.dims[0], x.dims[1], x.dims[2], 1, block);
}

void supports(const orr_op& op, orr_support& out) {
  require_reduce(op);
  const int32_t summed = op.in[0].dtype, stored = op.out[0].dtype;
  require(stored == summed || stored == accumulator(summed),
          "the dtype of y must be that of x, or of a sum its accumulator");
  orr::copy_text(out.numerics, "cuda.reduce.1: sums as in ops.h");
}

uint64_t measure(const orr_op& op) { return plan_of(op).workspace(); }

struct ReduceRows : Prepared {
  explicit ReduceRows(const orr_op& op)
      : plan_(plan_of(op)),
        first_(find_function(std::string("reduce_rows_") + number_name(op.in[0].dtype))),
        fold_(plan_, op.in[0].dtype, fold_of(op), op.out[0].dtype == op.in[0].dtype),
        fn_(fold_of(op)) {}

  void launch(CUstream stream, const Buffers& b) override {
    if (plan_.segments == 0) return;
    const ReduceArgs args{pointer(b.in[0]), fold_.first(b), plan_.segments,
                          plan_.length,     plan_.entries,  fn_};
    enqueue(stream, first_, blocks_of(plan_.segments * plan_.entries * 16), {kFoldThreads}, 0,
            args);
    fold_.rest(stream, b);
  }

  FoldPlan plan_;
  Function first_;
  FoldLaunch fold_;
  int fn_;
};

std::unique_ptr<Prepared> prepare(const orr_op& op) {
  const orr_tensor& x = op.in[0];
  if (x.dims[2] == 1) return std::make_unique<ReduceRows>(op);
  Terms terms(accumulators(x));
  int32_t term = terms.input(x);
  const int32_t fn = fold_of(op);
  if (fn == kFoldSumOfSquares) term = terms.push(ORR_FN_MUL, term, term);
  return std::make_unique<ColumnSums>(terms.op({term}), plan_of(op), x.dtype, fn,
                                      op.out[0].dtype == x.dtype, false);
}

}  // namespace

const Family reduce_family = {"reduce", supports, measure, prepare};

}  // namespace orr_cuda
