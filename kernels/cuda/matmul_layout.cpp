// SPDX-License-Identifier: Apache-2.0
#include "matmul_layout.h"

#include <algorithm>
#include <numeric>

#include "op.h"

namespace orr_cuda {
namespace {

// One of the outputs [M, N] that lie one after another, seen as one group. Nodes of leaves come as
// [nodes, M, N], [nodes, 1, M, N] or [1, M, N]; the first stride is then from node to node.
orr_tensor one_of(const orr_tensor& y) {
  orr_tensor t = y;
  t.rank = 3;
  for (int i = 1; i < 3; ++i)
    t.dims[i] = y.dims[y.rank - 3 + i], t.strides[i] = y.strides[y.rank - 3 + i];
  return t;
}

}  // namespace

// A dim of 1 has any stride. The one that it has is taken where it can be, so that one row has the
// alignment of many.
std::optional<Matrix> view_of(const orr_tensor& t, bool may_turn) {
  const int64_t rows = t.dims[1], cols = t.dims[2], row = t.strides[1], col = t.strides[2];
  const int64_t batch = t.dims[0] == 1 ? 0 : t.strides[0];
  if ((col == 1 || cols <= 1) && (row >= cols || rows <= 1))
    return Matrix{cols, rows, std::max<int64_t>({row, cols, 1}), batch, false};
  if (may_turn && (row == 1 || rows <= 1) && (col >= rows || cols <= 1))
    return Matrix{rows, cols, std::max<int64_t>({col, rows, 1}), batch, true};
  return std::nullopt;
}

MatmulShape::MatmulShape(const orr_op& op) {
  require_counts(op, 2, 1);
  require_rank(op.in[0], 3, "a");
  require_rank(op.in[1], 3, "b");
  require_real(op.in[0], "a");
  require_dtype(op.in[1], op.in[0].dtype, "b");
  require_dtype(op.out[0], op.in[0].dtype, "y");
  const orr_tensor &ta = op.in[0], &tb = op.in[1];
  dtype = ta.dtype;
  g = ta.dims[0], m = ta.dims[1], k = ta.dims[2], n = tb.dims[2];
  require_shape(tb, {g, k, n}, "b");
  require_leaves(op, k);
  require(op.out[0].rank >= 3, "y must have rank 3");
  const bool leaves = orr::attr(op, "leaf_n") != nullptr;
  require(!leaves || g == 1, "leaves need one group");
  if (leaves)
    require_nodes(op, op.out[0], {m, n}, "y");
  else
    require_shape(op.out[0], {g, m, n}, "y");
  const orr_tensor ty = one_of(op.out[0]);
  a = view_of(ta, true), b = view_of(tb, true), y = view_of(ty);
  rows_summed = a && a->turned;
  fast = orr::attr_text(op, "numerics", "") == "fast";
}

MatmulShape MatmulShape::of_leaf(int64_t depth) const {
  MatmulShape leaf = *this;
  leaf.k = (a->turned ? leaf.a->cols : leaf.a->rows) = depth;
  (b->turned ? leaf.b->rows : leaf.b->cols) = depth;
  return leaf;
}

Alignment alignment_of(const MatmulShape& shape) {
  const int64_t bytes = orr_dtype_bytes(shape.dtype);
  const auto of = [=](const Matrix& x) {
    return std::gcd(int64_t{16}, std::gcd(x.leading * bytes, x.batch_stride * bytes));
  };
  return {of(*shape.a), of(*shape.b), of(*shape.y)};
}

}  // namespace orr_cuda
