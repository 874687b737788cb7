// SPDX-License-Identifier: Apache-2.0
//
// reduce: sums in the order of ops.h, maxima and minima.
#include "fold_launch.h"
#include "require_nodes.h"

namespace orr_cuda {
namespace {

int fold_of(const orr_op& op) {
  const std::string_view name = orr::attr_text(op, "fn", "");
  if (name == "sum") return kFoldSum;
  if (name == "sumsq") return kFoldSumOfSquares;
  if (name == "max") return kFoldMax;
  require(name == "min", "fn must be \"sum\", \"sumsq\", \"max\" or \"min\"");
  return kFoldMin;
}

bool adds(const orr_op& op) { return fold_of(op) <= kFoldSumOfSquares; }

FoldPlan plan_of(const orr_op& op) {
  const orr_tensor& x = op.in[0];
  const int64_t block = x.dims[2] == 1 ? int64_t{ORR_SUM_BLOCK} : kColumnBlock;
  return FoldPlan(op, x.dims[0], x.dims[1], x.dims[2], 1, block);
}

// The dtype of the accumulators for values of this dtype.
int32_t accumulator(int32_t dtype) { return is_real(dtype) ? wide_dtype(dtype) : int32_t{ORR_I64}; }

void supports(const orr_op& op, orr_support& out) {
  require_counts(op, 1, 1);
  const orr_tensor &x = op.in[0], &y = op.out[0];
  require_rank(x, 3, "x");
  require(y.dtype == x.dtype || (adds(op) && y.dtype == accumulator(x.dtype)),
          "the dtype of y must be that of x, or of a sum its accumulator");
  require(x.dtype != ORR_BOOL || y.dtype != ORR_BOOL || !adds(op), "a sum of BOOL must be i64");
  require(adds(op) || x.dims[1] > 0, "nothing has no largest or smallest element");
  orr::copy_text(out.numerics, "cuda.reduce.1: sums as in ops.h");
  if (!orr::attr(op, "leaf_n")) return require_shape(y, {x.dims[0], x.dims[2]}, "y");
  require(fold_of(op) == kFoldSum && x.dims[0] == 1, "leaves need a sum with O = 1");
  require_leaves(op, x.dims[1]);
  require_nodes(op, y, {x.dims[2]}, "y");
}

uint64_t measure(const orr_op& op) { return plan_of(op).workspace(); }

struct Reduce : Prepared {
  explicit Reduce(const orr_op& op)
      : plan_(plan_of(op)),
        rows_(plan_.columns == 1),
        first_(find_function(std::string(rows_ ? "reduce_rows_" : "reduce_columns_") +
                             number_name(op.in[0].dtype))),
        fold_(plan_, op.in[0].dtype, fold_of(op), op.out[0].dtype == op.in[0].dtype),
        fn_(fold_of(op)),
        dtype_(op.in[0].dtype) {}

  void launch(CUstream stream, const Buffers& b) override {
    if (plan_.segments * plan_.columns == 0) return;
    const int64_t width = rows_ ? 1 : plan_.width(dtype_, {b.in[0]});
    const ReduceArgs args{pointer(b.in[0]),
                          fold_.first(b),
                          plan_.segments,
                          plan_.length,
                          plan_.columns,
                          plan_.entries,
                          fn_,
                          width > 1};
    const Extent grid = rows_ ? blocks_of(plan_.segments * plan_.entries * 16)
                              : plan_.column_grid(plan_.entries, width);
    enqueue(stream, first_, grid, {kFoldThreads}, 0, args);
    fold_.rest(stream, b);
  }

  FoldPlan plan_;
  bool rows_;
  Function first_;
  FoldLaunch fold_;
  int fn_;
  int32_t dtype_;
};

std::unique_ptr<Prepared> prepare(const orr_op& op) { return std::make_unique<Reduce>(op); }

}  // namespace

extern const Family reduce_family;
const Family reduce_family = {"reduce", supports, measure, prepare};

}  // namespace orr_cuda
