// SPDX-License-Identifier: Apache-2.0
//
// Ops that choose from rows: argmax, topk, categorical.
#include <algorithm>

#include "integers.h"
#include "rows.h"
#include "typed.h"

namespace orr_cpu::ORR_ISA {
namespace {

// NaN is above every number, so that it is seen.
template <class S>
ORR_INLINE bool above(S a, S b) {
  return a > b || (a != a && b == b);
}

template <class T>
struct ArgMax : Kernel {
  explicit ArgMax(const orr_op& op) : rows(op.in[0].dims[0]), columns(op.in[0].dims[1]) {}

  void launch(const orr_buffer* in, const orr_buffer* out, const orr_buffer*) override {
    int64_t* y = host<int64_t>(out[0]);
    parallel_ranges(rows, row_grain(columns), [&](int64_t first, int64_t last) {
      for (int64_t r = first; r < last; ++r) y[r] = find(host<T>(in[0]) + r * columns);
    });
  }
  int64_t find(const T* x) const {
    auto top = row_max(x, columns);
    for (int64_t c = 0; c < columns; ++c)
      if (!above(top, load_one(x + c))) return c;
    return 0;
  }
  int64_t rows, columns;
};

template <class T>
struct TopK : Kernel {
  explicit TopK(const orr_op& op)
      : rows(op.in[0].dims[0]), columns(op.in[0].dims[1]), k(attr_int(op, "k", 1)) {}

  void launch(const orr_buffer* in, const orr_buffer* out, const orr_buffer*) override {
    parallel_ranges(rows, row_grain(columns), [&](int64_t first, int64_t last) {
      for (int64_t r = first; r < last; ++r)
        row(host<T>(in[0]) + r * columns, host<T>(out[0]) + r * k, host<int64_t>(out[1]) + r * k);
    });
  }
  void row(const T* x, T* value, int64_t* index) const {
    k <= kFew ? insert(x, value, index) : keep_heap(x, value, index);
  }

  // A heap of the k best so far, the last of them on top.
  void keep_heap(const T* x, T* value, int64_t* index) const {
    const auto before = [x](int64_t a, int64_t b) {
      auto va = load_one(x + a), vb = load_one(x + b);
      return above(va, vb) || (a < b && !above(vb, va));
    };
    for (int64_t c = 0; c < k; ++c) index[c] = c;
    std::make_heap(index, index + k, before);
    for (int64_t c = k; c < columns; ++c) {
      if (!above(load_one(x + c), load_one(x + index[0]))) continue;
      std::pop_heap(index, index + k, before);
      index[k - 1] = c;
      std::push_heap(index, index + k, before);
    }
    std::sort_heap(index, index + k, before);
    for (int64_t j = 0; j < k; ++j) value[j] = x[index[j]];
  }

  // Insertion into the k best so far; most elements fail against the last of them.
  void insert(const T* x, T* value, int64_t* index) const {
    for (int64_t c = 0; c < columns; ++c) {
      int64_t at = smaller(c, k), room = smaller(c, k - 1);
      while (at > 0 && above(load_one(x + c), load_one(value + at - 1))) --at;
      if (at == k) continue;
      for (int64_t j = room; j > at; --j) value[j] = value[j - 1], index[j] = index[j - 1];
      value[at] = x[c], index[at] = c;
    }
  }
  static constexpr int64_t kFew = 16;
  int64_t rows, columns, k;
};

template <class T>
struct Categorical : Kernel {
  explicit Categorical(const orr_op& op)
      : seed(op, 1),
        step(op, 2),
        base(op, 3),
        rows(op.in[0].dims[0]),
        columns(op.in[0].dims[1]),
        id(uint32_t(attr_int(op, "rng_id", 0))) {}

  void launch(const orr_buffer* in, const orr_buffer* out, const orr_buffer*) override {
    uint64_t s = uint64_t(seed(host<void>(in[1]), 0)), b = uint64_t(base(host<void>(in[3]), 0));
    uint32_t t = uint32_t(step(host<void>(in[2]), 0));
    int64_t* y = host<int64_t>(out[0]);
    parallel_ranges(rows, row_grain(columns), [&](int64_t first, int64_t last) {
      for (int64_t r = first; r < last; ++r)
        y[r] = choose(host<T>(in[0]) + r * columns, orr_uniform(s, id, t, b + uint64_t(r)));
    });
  }
  // Calls add(c, weight) in order until it returns true.
  template <class Add>
  ORR_INLINE void each_weight(const T* x, Add&& add) const {
    Vec<T> top = splat(row_max(x, columns));
    for (int64_t c = 0; c < columns; c += kLanes) {
      int n = int(smaller(kLanes, columns - c));
      Scalar<T> e[kLanes];
      store(e, exp(load(x + c, n) - top), Full{});
      for (int i = 0; i < n; ++i)
        if (add(c + i, double(e[i]))) return;
    }
  }
  int64_t choose(const T* x, float u) const {
    double total = 0, running = 0;
    each_weight(x, [&](int64_t, double e) { return total += e, false; });
    int64_t chosen = columns - 1;
    each_weight(x, [&](int64_t c, double e) {
      running += e;
      bool hit = running > double(u) * total;
      if (hit) chosen = c;
      return hit;
    });
    return chosen;
  }
  Integers seed, step, base;
  int64_t rows, columns;
  uint32_t id;
};

}  // namespace

Kernel* make_argmax(const orr_op& op) { return make_real<ArgMax>(op.in[0].dtype, op); }
Kernel* make_topk(const orr_op& op) { return make_real<TopK>(op.in[0].dtype, op); }
Kernel* make_categorical(const orr_op& op) { return make_real<Categorical>(op.in[0].dtype, op); }

}  // namespace orr_cpu::ORR_ISA
