// SPDX-License-Identifier: Apache-2.0
//
// attention and its gradient: one task per (batch, head), in the gradient head of keys, whose heads
// of queries go in order; queries in order, keys in order. A task's workspace is one row of scores
// (forward) or the f32 sums of one head (gradient), never T x S; only the gradient of a bias, which
// is an output, is as large.
#include <limits>
#include <optional>

#include <orrery/sdk/attention_checks.hpp>

#include "op.h"
#include "rows.h"
#include "sums.h"

namespace reference {
namespace {

struct Shape {
  // Of an op that has so many inputs before bias and dropout.
  Shape(const orr_op& op, int operands)
      : Shape(op, operands, op.in + (operands == orr::attention_operands ? 0 : 1)) {}
  Shape(const orr_op& op, int operands, const orr_tensor* qk)
      : bias(operands),
        biased(orr::attention_has_bias(op, operands)),
        b(qk[0].dims[0]),
        h(qk[0].dims[1]),
        groups(qk[1].dims[1]),
        t(qk[0].dims[2]),
        s(qk[1].dims[2]),
        d(qk[0].dims[3]),
        scale(orr::attr_real(op, "scale", 1.0)),
        sight(op, t, s) {}

  // How many heads of queries read one of keys.
  int64_t readers() const { return groups ? h / groups : 0; }

  int bias;  // the input that it would be
  bool biased;
  int64_t b, h, groups, t, s, d;
  double scale;
  orr::AttentionSight sight;
};

// One head of a [B,H,L,D] tensor: rows by index.
template <class T>
struct Head {
  Head(T* base, const orr_tensor& t, int64_t b, int64_t h)
      : data(base + b * t.strides[0] + h * t.strides[1]), stride(t.strides[2]) {}
  T* operator[](int64_t row) const { return data + row * stride; }
  T* data;
  int64_t stride;
};

uint64_t accumulator_bytes(const orr_op& op) { return op.in[1].dtype == ORR_F64 ? 8 : 4; }

uint64_t forward_workspace(const orr_op& op) {
  const Shape s(op, orr::attention_operands);
  return accumulator_bytes(op) * uint64_t(s.b * s.h * (s.s + s.d));
}

uint64_t grad_workspace(const orr_op& op) {
  const Shape s(op, orr::attention_grad_operands);
  return accumulator_bytes(op) * uint64_t(s.b * s.groups * (2 * s.s + 1) * s.d);
}

template <class T>
Acc<T> dot(const T* a, const T* b, int64_t n) {
  return row_sum<Acc<T>>(n, [=](int64_t i) { return get(a[i]) * get(b[i]); });
}

// The bias of the scores of one head.
template <class T>
struct Bias {
  Bias(const Call& call, const Shape& s, int64_t b, int64_t h) {
    if (s.biased) of.emplace(call.input<T>(s.bias), call.op.in[s.bias], b, h);
  }
  Acc<T> added(Acc<T> score, int64_t t, int64_t i) const {
    return of ? score + get((*of)[t][i]) : score;
  }
  std::optional<Head<const T>> of;
};

// -inf, of queries that see nothing, as 0: scores of -inf minus it are -inf, and not NaN.
template <class A>
A finite(A top) {
  return top == -std::numeric_limits<A>::infinity() ? A(0) : top;
}

// Which weights of one head are left out.
struct Dropped {
  Dropped(const Call& call, const Shape& s, int64_t b, int64_t h)
      : of(call.op, s.bias + s.biased), keys(s.s) {
    if (!of.on()) return;
    const int first_input = s.bias + s.biased;
    seed = uint64_t(call.integer(first_input)), step = uint32_t(call.integer(first_input + 1));
    first = uint64_t(call.integer(first_input + 2) + of.row(b, h, s.t) * keys);
  }
  // The weight of key i for query t, of weight w before.
  template <class A>
  A operator()(A w, int64_t t, int64_t i) const {
    if (!of.on()) return w;
    const uint64_t element = first + uint64_t(t * keys + i);
    return orr_uniform(seed, of.rng_id(), step, element) < of.rate() ? A(0) : w * A(of.scale());
  }

  orr::AttentionDropout of;
  int64_t keys;
  uint64_t seed = 0, first = 0;
  uint32_t step = 0;
};

// to += weight * row
template <class T>
void add_row(Acc<T>* to, Acc<T> weight, const T* row, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] += weight * get(row[i]);
}

template <class T>
void forward_head(const Call& call, const Shape& s, int64_t b, int64_t h) {
  using A = Acc<T>;
  const orr_op& op = call.op;
  const int64_t group = h / s.readers();
  Head<const T> q(call.input<T>(0), op.in[0], b, h), k(call.input<T>(1), op.in[1], b, group),
      v(call.input<T>(2), op.in[2], b, group);
  Head<T> o(call.output<T>(0), op.out[0], b, h);
  const Bias<T> bias(call, s, b, h);
  const Dropped dropped(call, s, b, h);
  A* score = reinterpret_cast<A*>(call.workspace) + (b * s.h + h) * (s.s + s.d);
  A* acc = score + s.s;
  for (int64_t t = 0; t < s.t; ++t) {
    const int64_t first = s.sight.begin(t), n = s.sight.end(t) - first;
    for (int64_t i = 0; i < n; ++i)
      score[i] = bias.added(dot(q[t], k[first + i], s.d) * A(s.scale), t, first + i);
    const A top = row_max(score, n), base = finite(top);
    for (int64_t i = 0; i < n; ++i) score[i] = exp_of(score[i] - base);
    A sum = row_sum<A>(n, [=](int64_t i) { return score[i]; });
    std::fill(acc, acc + s.d, A(0));
    for (int64_t i = 0; i < n; ++i)
      add_row(acc, dropped(score[i], t, first + i), v[first + i], s.d);
    A inverse = sum == A(0) ? A(0) : A(1) / sum;
    for (int64_t i = 0; i < s.d; ++i) put(o[t][i], acc[i] * inverse);
    int64_t row = (b * s.h + h) * s.t + t;
    A lse = top + log_of(sum);
    if (op.out[1].dtype == ORR_F64)
      call.output<double>(1)[row] = double(lse);
    else
      call.output<float>(1)[row] = float(lse);
  }
}

// The gradient of one head of queries, in which that of keys and values, [S,D] each, is added up.
template <class T>
void grad_head(const Call& call, const Shape& s, int64_t b, int64_t h, Acc<T>* dq, Acc<T>* dk,
               Acc<T>* dv) {
  using A = Acc<T>;
  const orr_op& op = call.op;
  auto input = [&](int i, int64_t head) {
    return Head<const T>(call.input<T>(i), op.in[i], b, head);
  };
  const int64_t group = h / s.readers();
  auto d_o = input(0, h), q = input(1, h), k = input(2, group), v = input(3, group),
       o = input(4, h);
  const Head<T> to(call.output<T>(0), op.out[0], b, h);
  auto lse = [&](int64_t t) {
    int64_t row = (b * s.h + h) * s.t + t;
    return finite(op.in[5].dtype == ORR_F64 ? A(call.input<double>(5)[row])
                                            : A(call.input<float>(5)[row]));
  };
  const Bias<T> bias(call, s, b, h);
  const Dropped dropped(call, s, b, h);
  T* slope = op.n_out == 4 ? call.output<T>(3) + (b * s.h + h) * s.t * s.s : nullptr;
  for (int64_t i = 0; i < s.t * s.s && slope; ++i) put(slope[i], A(0));
  for (int64_t t = 0; t < s.t; ++t) {
    std::fill(dq, dq + s.d, A(0));
    A delta = dot(d_o[t], o[t], s.d);
    for (int64_t i = s.sight.begin(t), end = s.sight.end(t); i < end; ++i) {
      A p = exp_of(bias.added(dot(q[t], k[i], s.d) * A(s.scale), t, i) - lse(t));
      A ds = p * (dropped(dot(d_o[t], v[i], s.d), t, i) - delta);
      if (slope) put(slope[t * s.s + i], ds);
      ds *= A(s.scale);
      add_row(dq, ds, k[i], s.d);
      add_row(dk + i * s.d, ds, q[t], s.d);
      add_row(dv + i * s.d, dropped(p, t, i), d_o[t], s.d);
    }
    for (int64_t i = 0; i < s.d; ++i) put(to[t][i], dq[i]);
  }
}

// The gradients of one head of keys and values, and of the heads of queries that read it.
template <class T>
void grad_group(const Call& call, const Shape& s, int64_t b, int64_t group) {
  using A = Acc<T>;
  A* dq = reinterpret_cast<A*>(call.workspace) + (b * s.groups + group) * (2 * s.s + 1) * s.d;
  A *dk = dq + s.d, *dv = dk + s.s * s.d;
  std::fill(dk, dk + 2 * s.s * s.d, A(0));
  for (int64_t i = 0; i < s.readers(); ++i)
    grad_head<T>(call, s, b, group * s.readers() + i, dq, dk, dv);
  const Head<T> to_k(call.output<T>(1), call.op.out[1], b, group),
      to_v(call.output<T>(2), call.op.out[2], b, group);
  for (int64_t r = 0; r < s.s; ++r)
    for (int64_t i = 0; i < s.d; ++i) {
      put(to_k[r][i], dk[r * s.d + i]);
      put(to_v[r][i], dv[r * s.d + i]);
    }
}

void run_forward(const Call& call) {
  const Shape s(call.op, orr::attention_operands);
  with_real(call.op.in[0].dtype, [&]<class T>(Type<T>) {
    orr::parallel_for(s.b * s.h, [&](int64_t i) { forward_head<T>(call, s, i / s.h, i % s.h); });
  });
}

void run_grad(const Call& call) {
  const Shape s(call.op, orr::attention_grad_operands);
  with_real(call.op.in[1].dtype, [&]<class T>(Type<T>) {
    orr::parallel_for(s.b * s.groups,
                      [&](int64_t i) { grad_group<T>(call, s, i / s.groups, i % s.groups); });
  });
}

}  // namespace

const Family attention_family = {"attention",
                                 "reference.attention.1",
                                 orr::require_attention,
                                 run_forward,
                                 forward_workspace,
                                 15,
                                 1,
                                 nullptr};
const Family attention_grad_family = {"attention_grad",
                                      "reference.attention.1",
                                      orr::require_attention_grad,
                                      run_grad,
                                      grad_workspace,
                                      95,
                                      7,
                                      nullptr};

}  // namespace reference
