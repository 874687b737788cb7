// SPDX-License-Identifier: Apache-2.0
//
// reduce_each: sums over whole tensors, two launches for many of them.
#include <algorithm>
#include <orrery/sdk/kind_checks.hpp>
#include <vector>

#include "fold_launch.h"

namespace orr_cuda {
namespace {

int64_t entries_of(const orr_tensor& x) {
  return std::max(int64_t{1}, divide_up(x.dims[0], ORR_SUM_BLOCK));
}

int64_t all_entries(const orr_op& op) {
  int64_t all = 0;
  for (int i = 0; i < op.n_in; ++i) all += entries_of(op.in[i]);
  return all;
}

void supports(const orr_op& op, orr_support& out) {
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

uint64_t measure(const orr_op& op) { return uint64_t(all_entries(op) * kAccumulator); }

struct ReduceEach : Prepared {
  explicit ReduceEach(const orr_op& op)
      : each_(find_function(std::string("reduce_each_") + dtype_name(op.in[0].dtype))),
        fold_(find_function(std::string("fold_each_") + dtype_name(op.out[0].dtype))),
        fn_(orr::attr_text(op, "fn", "") == std::string_view("sum") ? kFoldSum
                                                                    : kFoldSumOfSquares) {
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

const Family reduce_each_family = {"reduce_each", supports, measure, prepare_as<ReduceEach>};

}  // namespace orr_cuda
