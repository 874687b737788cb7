// SPDX-License-Identifier: Apache-2.0
#include "window_layout.h"

#include <algorithm>
#include <bit>

#include "op.h"

namespace orr_cuda {
namespace {

// Elements of an operand, and indices: 32 bits hold a tile more.
constexpr int64_t kMost = (int64_t{1} << 31) - 4096;
// So many blocks keep a card busy. A number of this machine's card would make bits depend on it.
constexpr int64_t kBlocks = 256;
constexpr int64_t kMostGroups = 65535;  // of a grid
constexpr int64_t kFew = 64, kLong = 16384;
constexpr int64_t kLeastDepth = 512;  // of a part: less is not worth a sum of its own

Divisor divisor(int64_t by) {
  const int shift = std::bit_width(uint64_t(by) - 1);
  const uint64_t factor = (((uint64_t{1} << shift) - uint64_t(by)) << 32) / uint64_t(by) + 1;
  return {uint32_t(by), uint32_t(factor), uint32_t(shift)};
}

// Elements from the first one to the last.
int64_t reach_of(const orr_tensor& t) {
  int64_t reach = 1;
  for (int d = 0; d < t.rank; ++d) reach += (t.dims[d] - 1) * t.strides[d];
  return reach;
}

// Dims [first, last) of t as one.
JoinedIndex joined(const orr_tensor& t, int first, int last) {
  require(last - first <= kJoinedDims, "too many dims");
  JoinedIndex x{std::max(last - first, 1), {divisor(1)}, {0}};
  for (int d = first; d < last; ++d) {
    const int64_t stride = t.dims[d] == 1 ? 0 : t.strides[d];
    require(t.dims[d] < kMost && stride >= 0 && stride < kMost, "2^31 elements, or more");
    x.dims[d - first] = divisor(std::max<int64_t>(t.dims[d], 1));
    x.strides[d - first] = int32_t(stride);
  }
  return x;
}

// The first of the last dims that hold so many elements.
int first_of_last(const orr_tensor& t, int64_t elements) {
  int first = t.rank - 1;
  for (int64_t n = t.dims[first]; n < elements && first > 1; n *= t.dims[first]) --first;
  return first;
}

bool in_packets(const WindowOperand& x, int32_t dtype) {
  const int64_t packet = 16 / orr_dtype_bytes(dtype);
  const auto fits = [&](const JoinedIndex& index, int count) {
    return std::all_of(index.strides, index.strides + count,
                       [&](int32_t stride) { return stride % packet == 0; });
  };
  const int last = x.along.count - 1;
  return x.along.dims[last].by % packet == 0 && fits(x.along, last) &&
         fits(x.across, x.across.count) && x.group % packet == 0;
}

// An operand of [G, rows, columns], of which columns are `columns` elements; `k_last`: they are K.
WindowOperand operand(const orr_tensor& t, int64_t columns, bool k_last) {
  require(reach_of(t) < kMost, "2^31 elements, or more");
  const int first = first_of_last(t, columns);
  const JoinedIndex row = joined(t, 1, first), column = joined(t, first, t.rank);
  const bool straight = t.strides[t.rank - 1] == 1 || t.dims[t.rank - 1] == 1;
  require(straight || (t.rank == 3 && (t.strides[1] == 1 || t.dims[1] == 1)),
          "no dim of an operand has stride 1");
  const int64_t group = t.dims[0] == 1 ? 0 : t.strides[0];
  WindowOperand x = straight ? WindowOperand{row, column, group, k_last, false}
                             : WindowOperand{column, row, group, !k_last, false};
  x.along.strides[x.along.count - 1] = 1;
  x.packets = in_packets(x, t.dtype);
  return x;
}

}  // namespace

bool is_window_product(const orr_op& op) {
  if (op.n_in < 2 || op.n_out < 1) return false;
  const orr_tensor &a = op.in[0], &b = op.in[1];
  if (a.rank > 3 || b.rank > 3) return true;
  if (a.rank < 3 || b.rank < 3 || a.dims[0] != 1 || a.dtype == ORR_F64) return false;
  if (reach_of(a) >= kMost || reach_of(b) >= kMost) return false;
  const int64_t k = a.dims[2], bytes = orr_dtype_bytes(a.dtype);
  const bool summed = a.strides[1] == 1 && a.strides[2] != 1 && b.strides[2] == 1;
  const bool odd = a.strides[2] * bytes % 16 != 0 || b.strides[1] * bytes % 16 != 0;
  const int64_t few = std::min(a.dims[1], b.dims[2]);
  return summed && odd && few > 0 && few <= kFew && k >= kLong * Leaves(op).n;
}

WindowShape::WindowShape(const orr_op& op) {
  require_counts(op, 2, 1);
  const orr_tensor &ta = op.in[0], &tb = op.in[1], &ty = op.out[0];
  require(ta.rank >= 3 && tb.rank >= 3 && ty.rank >= 3, "three dims or more are needed");
  dtype = ta.dtype;
  require(dtype == ORR_F32 || dtype == ORR_BF16 || dtype == ORR_F16,
          "windows are read where they lie in f32, bf16 and f16");
  require_dtype(tb, dtype, "b");
  require_dtype(ty, dtype, "y");
  m = ty.dims[ty.rank - 2], n = ty.dims[ty.rank - 1];
  groups = ta.dims[0];
  require(groups > 0 && groups <= kMostGroups && m > 0 && n > 0,
          "a product that is not empty, of "
          "at most 65535 groups, is needed");
  k = elements(ta) / (groups * m);
  require(k > 0 && elements(ta) == groups * m * k && elements(tb) == groups * k * n &&
              tb.dims[0] == groups,
          "the shapes do not fit");
  require(std::max({m, n, k}) < kMost, "2^31 elements, or more");
  require_leaves(op, k);
  if (groups == 1)
    require_nodes(op, ty, {m, n}, "y");
  else
    require_nodes(op, ty, {groups, m, n}, "y");
  a = operand(ta, k, true), b = operand(tb, n, false);
  require(a.k_along || !b.k_along, "both operands have K across");
  y_row = m == 1 ? n : ty.strides[ty.rank - 2];
  require(n == 1 || ty.strides[ty.rank - 1] == 1, "columns of y must have stride 1");
  y_group = groups == 1 ? 0 : ty.strides[ty.rank - 3];
  y_node = groups == 1 || ty.rank > 3 ? ty.strides[0] : groups * m * n;
  summed = tb.rank > 3 || !a.k_along;
  fast = attr_text(op, "numerics", "") == "fast";
  cut(Leaves(op).n);
}

// By the shape of a leaf alone, so that bits depend on nothing else.
void WindowShape::cut(int64_t leaves) {
  depth = k / leaves;
  const bool tensor_cores = dtype != ORR_F32 || fast;
  rows = !a.k_along && m <= 64 && n > 64 ? 64 : 128;
  columns = rows == 64 || (tensor_cores && n > 64) ? 128 : 64;
  const int64_t tiles = divide_up(m, int64_t{rows}) * divide_up(n, int64_t{columns});
  const int64_t most = std::max<int64_t>(depth / kLeastDepth, 1);
  const int64_t wanted = summed ? std::min(divide_up(kBlocks, tiles), most) : 1;
  chunk = round_up(divide_up(depth, wanted), int64_t{64});
  parts = divide_up(depth, chunk);
  parts_ = parts * leaves;
  // Where a leaf or a part begins, packets must too.
  const int64_t packet = 16 / orr_dtype_bytes(dtype);
  for (WindowOperand* x : {&a, &b})
    x->packets = x->packets && (!x->k_along || leaves == 1 || depth % packet == 0);
}

uint64_t WindowShape::sum_bytes() const {
  return in_parts() ? uint64_t(groups * parts_ * m * n) * sizeof(float) : 0;
}

}  // namespace orr_cuda
