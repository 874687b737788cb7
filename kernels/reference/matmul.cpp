// SPDX-License-Identifier: Apache-2.0
//
// matmul: tiles of 64 x 64 outputs. Each tile reads a block of b into a dense f32 (f64) panel, so
// that strides and 16-bit storage are dealt with once, and the inner loop runs along a row of it.
// A tile's K is cut only at multiples of ORR_MATMUL_K, so bits do not depend on the number of rows,
// columns or threads.
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "leaves.h"
#include "op.h"

namespace reference {
namespace {

enum { kTile = 64, kDepth = ORR_MATMUL_K };

// Where the elements of an operand [G, rows, columns] lie, of which each may be several dims.
struct Operand {
  Operand(const orr_tensor& t, int64_t n_rows, int64_t n_columns)
      : group(t.strides[0]), rows{0}, columns{0} {
    int d = t.rank - 1;
    do spread(t, d--, columns);
    while (d > 1 && int64_t(columns.size()) < n_columns);
    for (; d > 0; --d) spread(t, d, rows);
    require(int64_t(rows.size()) == n_rows && int64_t(columns.size()) == n_columns,
            "the shape of an operand does not fit y");
  }
  // Puts dim d before those that the offsets are of.
  static void spread(const orr_tensor& t, int d, std::vector<int64_t>& offsets) {
    std::vector<int64_t> all;
    for (int64_t i = 0; i < t.dims[d]; ++i)
      for (int64_t o : offsets) all.push_back(i * t.strides[d] + o);
    offsets = std::move(all);
  }
  int64_t group;
  std::vector<int64_t> rows, columns;
};

struct Shape {
  explicit Shape(const orr_op& op)
      : groups(op.in[0].dims[0]),
        m(op.out[0].dims[op.out[0].rank - 2]),
        n(op.out[0].dims[op.out[0].rank - 1]),
        k(depth(op.in[0])) {}
  int64_t depth(const orr_tensor& a) const {
    if (a.rank == 3) return a.dims[2];
    return groups > 0 && m > 0 ? orr::elements(a) / (groups * m) : 0;
  }
  int64_t node() const { return groups * m * n; }
  int64_t groups, m, n, k;
};

// sum[j] = a[0]*b[0][j] + a[1]*b[1][j] + ... by fma, in order from +0.
template <class A>
__attribute__((always_inline)) inline void row_times_panel(const A* a, const A* b, int64_t depth,
                                                           A* sum) {
  A acc[kTile] = {};
  for (int64_t k = 0; k < depth; ++k)
    for (int j = 0; j < kTile; ++j) acc[j] = std::fma(a[k], b[k * kTile + j], acc[j]);
  std::copy(acc, acc + kTile, sum);
}

// fma rounds once on every machine; the clone only makes it one instruction where there is one.
#define FMA_CLONES __attribute__((target_clones("default", "fma")))
FMA_CLONES void multiply(const float* a, const float* b, int64_t depth, float* sum) {
  row_times_panel(a, b, depth, sum);
}
FMA_CLONES void multiply(const double* a, const double* b, int64_t depth, double* sum) {
  row_times_panel(a, b, depth, sum);
}

float flushed(float x) {
  return std::fabs(x) < std::numeric_limits<float>::min() ? std::copysign(0.0f, x) : x;
}

// From bf16, or eight bits, to bf16: in pairs, the second of a pair first, and what is subnormal
// counts as 0.
FMA_CLONES void multiply_pairs(const float* a, const float* b, int64_t depth, float* sum) {
  float acc[kTile] = {};
  for (int64_t i = 0; i < depth; ++i) {
    const bool alone = i % 2 == 0 && i + 1 == depth;  // its partner is 0
    const int64_t k = alone ? i : i ^ 1;
    const float x = flushed(a[k]);
    for (int j = 0; j < kTile; ++j) {
      if (alone) acc[j] += 0.0f;
      acc[j] = flushed(std::fma(x, flushed(b[k * kTile + j]), acc[j]));
    }
  }
  std::copy(acc, acc + kTile, sum);
}
#undef FMA_CLONES

// Of elements T and U, stored as Y.
template <class T, class U, class Y>
class Product {
 public:
  using A = Acc<T>;
  Product(const Shape& s, const orr_op& op, const T* a, const U* b)
      : s_(s), at_a_(op.in[0], s.m, s.k), at_b_(op.in[1], s.k, s.n), a_(a), b_(b) {}

  // y = a[:, :, k0 : k0 + depth] times b[:, k0 : k0 + depth, :].
  void run(int64_t k0, int64_t depth, Y* y) const {
    int64_t row_tiles = (s_.m + kTile - 1) / kTile, column_tiles = (s_.n + kTile - 1) / kTile;
    orr::parallel_for(s_.groups * row_tiles * column_tiles, [&](int64_t task) {
      int64_t column = task % column_tiles, row = task / column_tiles % row_tiles;
      tile(task / column_tiles / row_tiles, row * kTile, column * kTile, k0, depth, y);
    });
  }

 private:
  void tile(int64_t g, int64_t m0, int64_t n0, int64_t k0, int64_t depth, Y* y) const {
    int64_t rows = std::min<int64_t>(kTile, s_.m - m0),
            columns = std::min<int64_t>(kTile, s_.n - n0);
    A total[kTile][kTile] = {}, panel[kDepth * kTile], row[kDepth], sum[kTile];
    for (int64_t k = 0; k < depth; k += kDepth) {
      int64_t d = std::min<int64_t>(kDepth, depth - k);
      read_panel(g, k0 + k, d, n0, columns, panel);
      for (int64_t i = 0; i < rows; ++i) {
        read_row(g, m0 + i, k0 + k, d, row);
        if constexpr ((std::is_same_v<T, Bf16> || sizeof(T) == 1) && std::is_same_v<Y, Bf16>)
          multiply_pairs(row, panel, d, sum);
        else
          multiply(row, panel, d, sum);
        for (int j = 0; j < kTile; ++j) total[i][j] = k == 0 ? sum[j] : total[i][j] + sum[j];
      }
    }
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j)
        put(y[(g * s_.m + m0 + i) * s_.n + n0 + j], total[i][j]);
  }

  void read_panel(int64_t g, int64_t k0, int64_t depth, int64_t n0, int64_t columns, A* to) const {
    for (int64_t k = 0; k < depth; ++k) {
      const U* from = b_ + g * at_b_.group + at_b_.rows[size_t(k0 + k)];
      for (int64_t j = 0; j < kTile; ++j)
        to[k * kTile + j] = j < columns ? A(get(from[at_b_.columns[size_t(n0 + j)]])) : A(0);
    }
  }

  void read_row(int64_t g, int64_t m, int64_t k0, int64_t depth, A* to) const {
    const T* from = a_ + g * at_a_.group + at_a_.rows[size_t(m)];
    for (int64_t k = 0; k < depth; ++k) to[k] = get(from[at_a_.columns[size_t(k0 + k)]]);
  }

  Shape s_;
  Operand at_a_, at_b_;
  const T* a_;
  const U* b_;
};

void check(const orr_op& op) {
  require_counts(op, 2, 1);
  require(op.in[0].rank >= 3 && op.in[1].rank >= 3, "a and b need three dims or more");
  require(op.out[0].rank >= 3, "y needs three dims");
  require_product(op.in[0], op.in[1], op.out[0]);
  Shape s(op);
  if (op.in[0].rank == 3) require_shape(op.in[0], {s.groups, s.m, s.k}, "a");
  if (op.in[1].rank == 3) require_shape(op.in[1], {s.groups, s.k, s.n}, "b");
  if (op.in[0].rank > 3) Operand(op.in[0], s.m, s.k);
  if (op.in[1].rank > 3) Operand(op.in[1], s.k, s.n);
  require_leaves(op, s.k);
  if (!orr::attr(op, "leaf_n")) return require_shape(op.out[0], {s.groups, s.m, s.n}, "y");
  if (s.groups == 1) return require_nodes(op, op.out[0], {s.m, s.n}, "y");
  require_nodes(op, op.out[0], {s.groups, s.m, s.n}, "y");
}

uint64_t workspace(const orr_op& op) {
  return leaves_workspace(op, Shape(op).node(), op.out[0].dtype);
}

template <class T, class U, class Y>
void run_of(const Call& call) {
  Shape s(call.op);
  int64_t depth = s.k / Leaves(call.op).n;
  Product<T, U, Y> product(s, call.op, call.input<T>(0), call.input<U>(1));
  sum_leaves(call.op, call.output<Y>(0), s.node(), reinterpret_cast<Y*>(call.workspace),
             [&](int64_t leaf, Y* y) { product.run(leaf * depth, depth, y); });
}

template <class T, class U>
void run_of_eight_bits(const Call& call) {
  with_real(call.op.out[0].dtype, [&]<class Y>(Type<Y>) { run_of<T, U, Y>(call); });
}

void run(const Call& call) {
  const int32_t a = call.op.in[0].dtype, b = call.op.in[1].dtype;
  if (!is_eight_bits(a))
    return with_real_sum(a, call.op.out[0].dtype,
                         [&]<class T, class Y>(Type<T>, Type<Y>) { run_of<T, T, Y>(call); });
  const auto with_eight = [&](int32_t dtype, auto&& f) {
    dtype == ORR_F8_E4M3 ? f(Type<F8E4M3>{}) : f(Type<F8E5M2>{});
  };
  with_eight(a, [&]<class T>(Type<T>) {
    with_eight(b, [&]<class U>(Type<U>) { run_of_eight_bits<T, U>(call); });
  });
}

}  // namespace

const Family matmul_family = {"matmul", "reference.matmul.k256.2", check, run, workspace, 3, 0,
                              nullptr};

}  // namespace reference
