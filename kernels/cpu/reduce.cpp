// SPDX-License-Identifier: Apache-2.0
//
// reduce of reals: sums, sums of squares, maxima and minima over the middle dim.
#include "reduce.h"
#include "leaves.h"
#include "typed.h"

namespace orr_cpu::ORR_ISA {
namespace {

struct Sum {
  static constexpr bool adds = true;
  template <class V>
  ORR_INLINE static V term(V x) {
    return x;
  }
};
struct SumSquares {
  static constexpr bool adds = true;
  template <class V>
  ORR_INLINE static V term(V x) {
    return x * x;
  }
};
struct Max {
  static constexpr bool adds = false;
  template <class V>
  ORR_INLINE static V join(V a, V b) {
    return nan_max(a, b);
  }
  template <class V>
  ORR_INLINE static auto lanes(V a) {
    return max_lanes(a);
  }
};
struct Min {
  static constexpr bool adds = false;
  template <class V>
  ORR_INLINE static V join(V a, V b) {
    return nan_min(a, b);
  }
  template <class V>
  ORR_INLINE static auto lanes(V a) {
    return min_lanes(a);
  }
};

// One block of a row: the unit of parallel work and of the order of sums.
template <class T, class F>
ORR_INLINE Scalar<T> one_block(const T* x, int64_t n) {
  if constexpr (F::adds) {
    return block_sum<Vec<T>>(0, n, [&](int64_t i, auto k) { return F::term(load(x + i, k)); });
  } else {
    Vec<T> start = splat(load_one(x)), acc = start;
    each_vector(0, n, [&](int64_t i, auto k) {
      if constexpr (sizeof(k) == sizeof(Full))
        acc = F::join(acc, load(x + i, k));
      else
        acc = F::join(acc, keep_first(load(x + i, k), start, k));
    });
    return F::lanes(acc);
  }
}

template <class T, class Y, class F>
struct Reduce : Kernel {
  using S = Scalar<T>;
  explicit Reduce(const orr_op& op)
      : leaves(op), outer(op.in[0].dims[0]), length(op.in[0].dims[1]), inner(op.in[0].dims[2]) {}

  void launch(const orr_buffer* in, const orr_buffer* out, const orr_buffer* work) override {
    const T* x = host<T>(in[0]);
    Y* y = host<Y>(out[0]);
    if (inner == 1) return rows(x, y, work ? host<S>(*work) : nullptr);
    for (int64_t o = 0; o < outer; ++o) columns(x + o * length * inner, y + o * inner);
  }

  // A row is one leaf of one outer index. Long rows are cut into blocks, whose values wait in
  // `partial` (absent if no row is longer than a block) to be joined in order.
  void rows(const T* x, Y* y, S* partial) const {
    const int64_t count = outer * leaves.n, n = length / leaves.n, blocks = reduce_blocks(n);
    if (blocks <= 1) return short_rows(x, y, n);
    parallel_ranges(count * blocks, 16, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        int64_t row = i / blocks, at = (i - row * blocks) * ORR_SUM_BLOCK;
        partial[i] = one_block<T, F>(x + row * n + at, smaller(ORR_SUM_BLOCK, n - at));
      }
    });
    parallel_ranges(outer, larger(1, 4096 / (blocks * leaves.n)), [&](int64_t first, int64_t last) {
      for (int64_t o = first; o < last; ++o)
        nodes(y + o,
              [&](int64_t leaf) { return join(partial + (o * leaves.n + leaf) * blocks, blocks); });
    });
  }
  void short_rows(const T* x, Y* y, int64_t n) const {
    parallel_ranges(outer, row_grain(length), [&](int64_t first, int64_t last) {
      for (int64_t o = first; o < last; ++o)
        nodes(y + o, [&](int64_t leaf) {
          return n ? one_block<T, F>(x + o * length + leaf * n, n) : S(0);
        });
    });
  }
  static S join(const S* part, int64_t n) {
    if constexpr (F::adds) {
      TreeSum<S> tree;
      for (int64_t i = 0; i < n; ++i) tree.add(part[i]);
      return tree.total();
    } else {
      S x = part[0];
      for (int64_t i = 1; i < n; ++i) x = F::join(x, part[i]);
      return x;
    }
  }
  template <class Value>
  void nodes(Y* y, Value&& value) const {
    each_node<Y, S>(leaves, value, [&](int64_t node, S v) { store_one(y + node, v); });
  }

  void columns(const T* x, Y* y) const {
    if constexpr (F::adds) {
      column_sums(leaves, length, inner, y, [&](int64_t r, int64_t c, auto n) {
        return F::term(load(x + r * inner + c, n));
      });
    } else {
      parallel_ranges(inner, 64, [&](int64_t first, int64_t last) {
        each_vector(first, last, [&](int64_t c, auto n) {
          Vec<T> acc = load(x + c, n);
          for (int64_t r = 1; r < length; ++r) acc = F::join(acc, load(x + r * inner + c, n));
          store(y + c, acc, n);
        });
      });
    }
  }

  Leaves leaves;
  int64_t outer, length, inner;
};

template <class T, class Y>
using ReduceSum = Reduce<T, Y, Sum>;
template <class T, class Y>
using ReduceSquares = Reduce<T, Y, SumSquares>;
template <class T>
using ReduceMax = Reduce<T, T, Max>;
template <class T>
using ReduceMin = Reduce<T, T, Min>;

}  // namespace

Kernel* make_reduce_int(const orr_op& op);

Kernel* make_reduce(const orr_op& op) {
  const int32_t from = op.in[0].dtype, to = op.out[0].dtype;
  if (from == ORR_I32 || from == ORR_I64 || from == ORR_BOOL) return make_reduce_int(op);
  switch (reduce_fn(op)) {
    case ReduceFn::sum: return make_sum<ReduceSum>(from, to, op);
    case ReduceFn::sumsq: return make_sum<ReduceSquares>(from, to, op);
    case ReduceFn::max: return make_real<ReduceMax>(from, op);
    default: return make_real<ReduceMin>(from, op);
  }
}

}  // namespace orr_cpu::ORR_ISA
