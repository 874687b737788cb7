// SPDX-License-Identifier: Apache-2.0
//
// reduce: sums in the order of ops.h, maxima and minima. reduce_each: sums over whole tensors, two
// launches for many of them.
#include <algorithm>
#include <orrery/sdk/kind_checks.hpp>
#include <vector>

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
  if (x.dims[2] == 1) return FoldPlan(op, x.dims[0], x.dims[1], 1, 1, ORR_SUM_BLOCK);
  return column_plan(op, x.dims[0], x.dims[1], x.dims[2], 1);
}

void supports(const orr_op& op, orr_support& out) {
  require_reduce(op);
  const int32_t summed = op.in[0].dtype, stored = op.out[0].dtype;
  require(stored == summed || stored == accumulator(summed),
          "the dtype of y must be that of x, or of a sum its accumulator");
  orr::copy_text(out.numerics, "cuda.reduce.1: sums as in ops.h");
  // The generated kernel reads rows that are apart.
  const orr_tensor& x = op.in[0];
  if (x.dims[2] > 1 && x.strides[2] == 1 && x.strides[1] >= x.dims[2]) out.strided_in = 1;
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
                                      op.out[0].dtype == x.dtype, ColumnSums::Results{});
}

int64_t entries_of(const orr_tensor& x) {
  return std::max(int64_t{1}, divide_up(x.dims[0], ORR_SUM_BLOCK));
}

int64_t all_entries(const orr_op& op) {
  int64_t all = 0;
  for (int i = 0; i < op.n_in; ++i) all += entries_of(op.in[i]);
  return all;
}

void supports_each(const orr_op& op, orr_support& out) {
  require_reduce_each(op);
  for (int i = 0; i < op.n_in; ++i) {
    require_dtype(op.out[i], op.out[0].dtype, "y");
    require(entries_of(op.in[i]) <= int64_t{kFoldLongest} * kFoldThreads, "a tensor is too long");
  }
  require(op.out[0].dtype == op.in[0].dtype || op.out[0].dtype == wide_dtype(op.in[0].dtype),
          "the dtype of y must be that of x or of its accumulator");
  require(all_entries(op) < int64_t{1} << 26, "too many elements");
  orr::copy_text(out.numerics, "cuda.reduce_each.1: sums as in ops.h");
}

uint64_t measure_each(const orr_op& op) { return uint64_t(all_entries(op) * kAccumulator); }

struct ReduceEach : Prepared {
  explicit ReduceEach(const orr_op& op)
      : each_(find_function(std::string("reduce_each_") + dtype_name(op.in[0].dtype))),
        fold_(find_function(std::string("fold_each_") + dtype_name(op.out[0].dtype))),
        fn_(fold_of(op)) {
    for (int i = 0; i < op.n_in; ++i)
      lengths_.push_back(op.in[i].dims[0]), entries_.push_back(int32_t(entries_of(op.in[i])));
  }

  void launch(CUstream stream, const Buffers& b) override {
    CUdeviceptr work = b.workspace;
    for (size_t from = 0; from < lengths_.size(); from += kEachTensors) {
      const size_t end = std::min(lengths_.size(), from + kEachTensors);
      ReduceEachArgs args{};
      args.work = pointer(work), args.fn = fn_;
      for (size_t i = from; i < end; ++i) {
        args.tensor[args.tensors++] = {pointer(b.in[i]), pointer(b.out[i]), lengths_[i],
                                       args.entries, entries_[i]};
        args.entries += entries_[i];
      }
      enqueue(stream, each_, blocks_of(int64_t{args.entries} * 16), {kFoldThreads}, 0, args);
      enqueue(stream, fold_, {unsigned(args.tensors)}, {kFoldThreads}, 0, args);
      work += CUdeviceptr(args.entries * kAccumulator);
    }
  }

  Function each_, fold_;
  int fn_;
  std::vector<int64_t> lengths_;
  std::vector<int32_t> entries_;
};

}  // namespace

const Family reduce_family = {"reduce", supports, measure, prepare};
const Family reduce_each_family = {"reduce_each", supports_each, measure_each,
                                   prepare_as<ReduceEach>};

}  // namespace orr_cuda
