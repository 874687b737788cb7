// SPDX-License-Identifier: Apache-2.0
//
// Ops that choose from rows: argmax, topk, categorical. A NaN counts as the largest, as in reduce.
#include <orrery/sdk/kind_checks.hpp>

#include "op.h"
#include "rows.h"

namespace reference {
namespace {

// Whether a comes before b in descending order.
template <class A>
bool above(A a, A b) {
  return a > b || (a != a && b == b);
}

void run_argmax(const Call& call) {
  int64_t rows = call.op.in[0].dims[0], n = call.op.in[0].dims[1];
  with_any(call.op.in[0].dtype, [&]<class T>(Type<T>) {
    orr::parallel_for(rows, [&](int64_t r) {
      const T* x = call.input<T>(0) + r * call.op.in[0].strides[0];
      int64_t best = 0;
      for (int64_t c = 1; c < n; ++c)
        if (above(get(x[c]), get(x[best]))) best = c;
      call.output<int64_t>(0)[r] = best;
    });
  });
}

// Insertion into the k best so far; an equal element goes behind, so that ties stay in index order.
void run_topk(const Call& call) {
  int64_t rows = call.op.in[0].dims[0], n = call.op.in[0].dims[1],
          k = orr::attr_int(call.op, "k", 1);
  with_any(call.op.in[0].dtype, [&]<class T>(Type<T>) {
    orr::parallel_for(rows, [&](int64_t r) {
      const T* x = call.input<T>(0) + r * call.op.in[0].strides[0];
      T* value = call.output<T>(0) + r * k;
      int64_t* index = call.output<int64_t>(1) + r * k;
      for (int64_t c = 0; c < n; ++c) {
        int64_t at = std::min(c, k);
        while (at > 0 && above(get(x[c]), get(value[at - 1]))) --at;
        if (at == k) continue;
        for (int64_t j = std::min(c, k - 1); j > at; --j)
          value[j] = value[j - 1], index[j] = index[j - 1];
        value[at] = x[c], index[at] = c;
      }
    });
  });
}

void run_categorical(const Call& call) {
  int64_t rows = call.op.in[0].dims[0], n = call.op.in[0].dims[1];
  auto id = uint32_t(orr::attr_int(call.op, "rng_id", 0));
  auto seed = uint64_t(call.integer(1)), base = uint64_t(call.integer(3));
  auto step = uint32_t(call.integer(2));
  with_real(call.op.in[0].dtype, [&]<class T>(Type<T>) {
    orr::parallel_for(rows, [&](int64_t r) {
      const T* x = call.input<T>(0) + r * n;
      Acc<T> top = row_max(x, n);
      double total = 0, running = 0;
      for (int64_t c = 0; c < n; ++c) total += double(exp_of(get(x[c]) - top));
      double target = double(orr_uniform(seed, id, step, base + uint64_t(r))) * total;
      int64_t chosen = 0;
      for (; chosen < n - 1; ++chosen) {
        running += double(exp_of(get(x[chosen]) - top));
        if (running > target) break;
      }
      call.output<int64_t>(0)[r] = chosen;
    });
  });
}

}  // namespace

const Family argmax_family = {
    "argmax", "reference.argmax.1", require_argmax, run_argmax, nullptr, 1, 0, nullptr};
const Family topk_family = {"topk", "reference.topk.1", require_topk, run_topk, nullptr, 1, 0,
                            nullptr};
const Family categorical_family = {
    "categorical", "reference.categorical.1", require_categorical, run_categorical, nullptr, 0, 0,
    nullptr};

}  // namespace reference
