// SPDX-License-Identifier: Apache-2.0
//
// reduce: sums, sums of squares, maxima and minima over the middle dim of x[O,K,I].
#include <orrery/sdk/kind_checks.hpp>

#include "leaves.h"
#include "op.h"
#include "sums.h"

#include <string_view>

namespace reference {
namespace {

uint64_t workspace(const orr_op& op) {
  return leaves_workspace(op, op.in[0].dims[2], op.out[0].dtype);
}

struct Plain {
  template <class A>
  A operator()(A x) const {
    return x;
  }
};
struct Square {
  float operator()(float x) const { return x * x; }
  double operator()(double x) const { return x * x; }
  int64_t operator()(int64_t x) const { return int64_t(uint64_t(x) * uint64_t(x)); }
};

// y[O,I] = the sums of term(x[O,length,I]), where x has these strides.
template <class Term, class T, class Y>
void sum(const T* x, int64_t o, int64_t length, int64_t inner, const int64_t* strides, Y* y) {
  using A = Acc<T>;
  const int64_t outer = strides[0], row = strides[1], column = strides[2];
  if (inner == 1)
    return orr::parallel_for(o, [=](int64_t i) {
      const T* from = x + i * outer;
      put(y[i], row_sum<A>(length, [=](int64_t k) { return Term()(get(from[k * row])); }));
    });
  int64_t tiles = (inner + kColumns - 1) / kColumns;
  orr::parallel_for(o * tiles, [=](int64_t task) {
    int64_t c0 = task % tiles * kColumns, n = std::min<int64_t>(kColumns, inner - c0);
    const T* from = x + task / tiles * outer + c0 * column;
    A total[kColumns];
    column_sum(0, length, n, total,
               [=](int64_t k, int64_t c) { return Term()(get(from[k * row + c * column])); });
    for (int64_t c = 0; c < n; ++c) put(y[task / tiles * inner + c0 + c], total[c]);
  });
}

// The largest (smallest) of each column; a NaN once seen stays.
template <class T>
void extreme(const Call& call, bool largest) {
  const orr_tensor& t = call.op.in[0];
  int64_t length = t.dims[1], inner = t.dims[2], row = t.strides[1];
  const T* x = call.input<T>(0);
  T* y = call.output<T>(0);
  orr::parallel_for(t.dims[0] * inner, [=, &t](int64_t i) {
    const T* from = x + i / inner * t.strides[0] + i % inner * t.strides[2];
    Acc<T> best = get(from[0]);
    for (int64_t k = 1; k < length && best == best; ++k) {
      Acc<T> v = get(from[k * row]);
      if (v != v || (largest ? v > best : v < best)) best = v;
    }
    put(y[i], best);
  });
}

template <class Term, class T, class Y>
void sums(const Call& call) {
  const orr_tensor& t = call.op.in[0];
  int64_t length = t.dims[1] / Leaves(call.op).n, inner = t.dims[2];
  const T* x = call.input<T>(0);
  sum_leaves(call.op, call.output<Y>(0), t.dims[0] * inner, reinterpret_cast<Y*>(call.workspace),
             [=, &t](int64_t leaf, Y* y) {
               sum<Term>(x + leaf * length * t.strides[1], t.dims[0], length, inner, t.strides, y);
             });
}

void run(const Call& call) {
  std::string_view fn = orr::attr_text(call.op, "fn", "");
  if (fn == "max" || fn == "min")
    return with_any(call.op.in[0].dtype, [&]<class T>(Type<T>) { extreme<T>(call, fn == "max"); });
  with_sum(call.op.in[0].dtype, call.op.out[0].dtype, [&]<class T, class Y>(Type<T>, Type<Y>) {
    fn == "sum" ? sums<Plain, T, Y>(call) : sums<Square, T, Y>(call);
  });
}

}  // namespace

const Family reduce_family = {"reduce", "reference.reduce.1", require_reduce, run, workspace, 1, 0,
                              nullptr};

}  // namespace reference
