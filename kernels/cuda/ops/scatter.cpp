// SPDX-License-Identifier: Apache-2.0
//
// scatter_add.
#include "../device/scatter.h"

#include <orrery/sdk/kind_checks.hpp>

#include "fold_launch.h"
#include "token_sort.h"

namespace orr_cuda {
namespace {

constexpr int64_t kMost = int64_t{1} << 31;

int64_t rows_of(const orr_op& op) { return orr::attr_int(op, "rows", 0); }

void supports(const orr_op& op, orr_support& out) {
  require_scatter_add(op);
  const orr_tensor& dy = op.in[1];
  require_dtype(op.out[0], dy.dtype, "y");
  require(rows_of(op) < kMost && dy.dims[0] < kMost, "2^31 rows or tokens, or more");
  require(dy.dims[1] < 1 << 21, "rows of more than 2 million elements");
  if (op.n_in == 3) out.inplace = 3;
  orr::copy_text(out.numerics, "cuda.scatter_add.1: as ops.h");
}

uint64_t measure(const orr_op& op) { return TokenSort::workspace(op.in[0].dims[0], rows_of(op)); }

struct Scatter : Prepared {
  explicit Scatter(const orr_op& op)
      : leaves_(op),
        sort_(op, outside("index", rows_of(op), "rows of the table"), op.in[0], rows_of(op), false),
        tokens_(op.in[0].dims[0]),
        rows_(rows_of(op)),
        columns_(op.in[1].dims[1]),
        dtype_(op.in[1].dtype),
        based_(op.n_in == 3) {
    one_ = find_function(std::string("scatter_") + number_name(dtype_));
    packets_ = find_function(std::string("scatter_packets_") + number_name(dtype_));
    leaf_tree_ = find_function(std::string("scatter_leaves_") + number_name(dtype_));
    args_.nodes = fill_nodes(leaves_, args_.node);
  }

  void launch(CUstream stream, const Buffers& b) override {
    if (rows_ == 0 && tokens_ == 0) return;
    const TokenSort::Sorted sorted = sort_.enqueue(stream, b.in[0], b.workspace);
    add(stream, b, sorted.start, sorted.order);
  }

  void add(CUstream stream, const Buffers& b, const int32_t* start, const int32_t* order) {
    ScatterArgs args = args_;
    args.start = start;
    args.order = order;
    args.dy = pointer(b.in[1]);
    args.base = based_ ? pointer(b.in[2]) : nullptr;
    args.y = pointer(b.out[0]);
    args.rows = rows_;
    args.columns = columns_;
    args.leaf_tokens = tokens_ / leaves_.n;
    const int64_t bytes = orr_dtype_bytes(dtype_);
    const CUdeviceptr bits =
        CUdeviceptr(columns_ * bytes) | b.in[1] | b.out[0] | (based_ ? b.in[2] : 0);
    const bool packets = leaves_.n == 1 && bits % 16 == 0;
    const int64_t width = 32 * (packets ? 16 / bytes : 1);
    const Extent grid{unsigned((rows_ + kScatterWarps - 1) / kScatterWarps),
                      unsigned((columns_ + width - 1) / width)};
    enqueue(stream,
            leaves_.n > 1 ? leaf_tree_
            : packets     ? packets_
                          : one_,
            grid, {32 * kScatterWarps}, 0, args);
  }

  Leaves leaves_;
  TokenSort sort_;
  int64_t tokens_, rows_, columns_;
  int32_t dtype_;
  bool based_;
  Function one_, packets_, leaf_tree_;
  ScatterArgs args_{};
};

}  // namespace

const Family scatter_add_family = {"scatter_add", supports, measure, prepare_as<Scatter>};

}  // namespace orr_cuda
