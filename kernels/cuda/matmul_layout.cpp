// SPDX-License-Identifier: Apache-2.0
#include "matmul_layout.h"

#include <algorithm>
#include <numeric>

#include "op.h"

namespace orr_cuda {
namespace {

// One of the outputs that lie one after another, seen as one group if it is one. Nodes of leaves
// come as [nodes, M, N], [nodes, G, M, N] or [G, M, N].
orr_tensor one_of(const orr_tensor& y, int64_t groups) {
  orr_tensor t = y;
  t.rank = 3;
  for (int i = groups > 1 ? 0 : 1; i < 3; ++i)
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
  const orr_tensor &ta = op.in[0], &tb = op.in[1];
  dtype = ta.dtype, dtype_b = tb.dtype, dtype_y = op.out[0].dtype;
  require_product(ta, tb, op.out[0]);
  require(dtype == dtype_y || is_eight_bits(dtype), "y has another dtype than a");
  g = ta.dims[0], m = ta.dims[1], k = ta.dims[2], n = tb.dims[2];
  require_shape(tb, {g, k, n}, "b");
  require_leaves(op, k);
  require(op.out[0].rank >= 3, "y must have rank 3");
  if (orr::attr(op, "leaf_n") && g == 1)
    require_nodes(op, op.out[0], {m, n}, "y");
  else if (orr::attr(op, "leaf_n"))
    require_nodes(op, op.out[0], {g, m, n}, "y");
  else
    require_shape(op.out[0], {g, m, n}, "y");
  const orr_tensor ty = one_of(op.out[0], g);
  a = view_of(ta, true), b = view_of(tb, true), y = view_of(ty);
  rows_summed = a && a->turned;
  fast = orr::attr_text(op, "numerics", "") == "fast";
  if (is_eight_bits(dtype)) be_of_eight_bits(Leaves(op).n);
}

// What cuBLASLt takes of eight bits: rows of K in both factors, 16 bytes of everything.
void MatmulShape::be_of_eight_bits(int64_t leaves) {
  constexpr int64_t whole = 16;
  require(dtype == ORR_F8_E4M3 || dtype_b == ORR_F8_E4M3, "both factors are f8_e5m2");
  require(g == 1, "groups of eight bits");
  require(k % (whole * leaves) == 0 && n % whole == 0,
          "of eight bits K, and K of a leaf, and N must be multiples of 16");
  const auto reads = [&](const std::optional<Matrix>& x, bool turned) {
    return x && x->turned == turned && x->leading == k;
  };
  copies_a = !reads(a, false), copies_b = !reads(b, true);
  if (copies_a) a = Matrix{k, m, std::max<int64_t>(k, 1), 0, false};
  if (copies_b) b = Matrix{k, n, std::max<int64_t>(k, 1), 0, true};
  if (y && y->leading * orr_dtype_bytes(dtype_y) % whole != 0) y.reset();
}

MatmulShape MatmulShape::of_leaf(int64_t depth) const {
  MatmulShape leaf = *this;
  leaf.k = (a->turned ? leaf.a->cols : leaf.a->rows) = depth;
  (b->turned ? leaf.b->rows : leaf.b->cols) = depth;
  return leaf;
}

Alignment alignment_of(const MatmulShape& shape) {
  const auto of = [](const Matrix& x, int32_t dtype) {
    const int64_t bytes = orr_dtype_bytes(dtype);
    return std::gcd(int64_t{16}, std::gcd(x.leading * bytes, x.batch_stride * bytes));
  };
  return {of(*shape.a, shape.dtype), of(*shape.b, shape.dtype_b), of(*shape.y, shape.dtype_y)};
}

}  // namespace orr_cuda
