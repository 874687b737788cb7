// SPDX-License-Identifier: Apache-2.0
//
// attention and its gradient: one task per (batch, head), queries in order, keys in order. A task's
// workspace is one row of scores (forward) or the f32 sums of one head (gradient), never T x S.
#include <orrery/sdk/attention.hpp>

#include "op.h"
#include "rows.h"
#include "sums.h"

namespace reference {
namespace {

struct Shape {
  Shape(const orr_op& op, const orr_tensor& q, const orr_tensor& k)
      : b(q.dims[0]),
        h(q.dims[1]),
        t(q.dims[2]),
        s(k.dims[2]),
        d(q.dims[3]),
        scale(orr::attr_real(op, "scale", 1.0)),
        causal(orr::attr_int(op, "causal", 0) != 0) {}

  // How many keys, from the first, query i sees.
  int64_t seen(int64_t i) const { return causal ? std::clamp<int64_t>(i + 1 + s - t, 0, s) : s; }

  int64_t b, h, t, s, d;
  double scale;
  bool causal;
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

void check_operands(const orr_op& op, const orr_tensor* q) {
  require_rank(q[0], 4, "q");
  require_rank(q[1], 4, "k");
  require_real(q[0], "q");
  Shape s(op, q[0], q[1]);
  for (int i = 1; i < 3; ++i) {
    require_dtype(q[i], q[0].dtype, "k or v");
    require_shape(q[i], {s.b, s.h, s.s, s.d}, "k or v");
  }
}

void require_like(const orr_tensor& t, const orr_tensor& x, const char* name) {
  require_dtype(t, x.dtype, name);
  require_shape(t, {x.dims[0], x.dims[1], x.dims[2], x.dims[3]}, name);
}

// f32; for f64 operands f64 is taken too, so that gradients can be checked in full precision.
void require_lse(const orr_tensor& t, const orr_tensor& q) {
  require(t.dtype == ORR_F32 || t.dtype == wide_dtype(q.dtype), "the dtype of lse must be f32");
  require_shape(t, {q.dims[0], q.dims[1], q.dims[2]}, "lse");
}

void require_tensors(const orr_op& op, int operands, int n_out) {
  require(orr::AttentionDropout::fits(op, operands), orr::attention_inputs);
  require_counts(op, op.n_in, n_out);
}

void require_dense_rows(const orr_tensor* t, int n) {
  for (int i = 0; i < n; ++i)
    require(t[i].rank != 4 || t[i].dims[3] <= 1 || t[i].strides[3] == 1,
            "the last stride must be 1");
}

void check_forward(const orr_op& op) {
  require_tensors(op, 3, 2);
  check_operands(op, op.in);
  require_like(op.out[0], op.in[0], "o");
  require_lse(op.out[1], op.in[0]);
  require_dense_rows(op.in, 3);
  require_dense_rows(op.out, 1);
}

void check_grad(const orr_op& op) {
  require_tensors(op, 6, 3);
  check_operands(op, op.in + 1);
  require_like(op.in[0], op.in[1], "do");
  require_like(op.in[4], op.in[1], "o");
  require_lse(op.in[5], op.in[1]);
  for (int i = 0; i < 3; ++i) require_like(op.out[i], op.in[1 + i], "a gradient");
  require_dense_rows(op.in, 5);
  require_dense_rows(op.out, 3);
}

uint64_t accumulator_bytes(const orr_op& op) { return op.in[1].dtype == ORR_F64 ? 8 : 4; }

uint64_t forward_workspace(const orr_op& op) {
  Shape s(op, op.in[0], op.in[1]);
  return accumulator_bytes(op) * uint64_t(s.b * s.h * (s.s + s.d));
}

uint64_t grad_workspace(const orr_op& op) {
  Shape s(op, op.in[1], op.in[2]);
  return accumulator_bytes(op) * uint64_t(s.b * s.h * (2 * s.s + 1) * s.d);
}

template <class T>
Acc<T> dot(const T* a, const T* b, int64_t n) {
  return row_sum<Acc<T>>(n, [=](int64_t i) { return get(a[i]) * get(b[i]); });
}

// Which weights of one head are left out.
struct Dropped {
  Dropped(const Call& call, const Shape& s, int operands, int64_t b, int64_t h)
      : of(call.op, operands), keys(s.s) {
    if (!of.on()) return;
    seed = uint64_t(call.integer(operands)), step = uint32_t(call.integer(operands + 1));
    first = uint64_t(call.integer(operands + 2) + of.row(b, h, s.t) * keys);
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
  Head<const T> q(call.input<T>(0), op.in[0], b, h), k(call.input<T>(1), op.in[1], b, h),
      v(call.input<T>(2), op.in[2], b, h);
  Head<T> o(call.output<T>(0), op.out[0], b, h);
  const Dropped dropped(call, s, 3, b, h);
  A* score = reinterpret_cast<A*>(call.workspace) + (b * s.h + h) * (s.s + s.d);
  A* acc = score + s.s;
  for (int64_t t = 0; t < s.t; ++t) {
    int64_t n = s.seen(t);
    for (int64_t i = 0; i < n; ++i) score[i] = dot(q[t], k[i], s.d) * A(s.scale);
    A top = row_max(score, n);
    for (int64_t i = 0; i < n; ++i) score[i] = exp_of(score[i] - top);
    A sum = row_sum<A>(n, [=](int64_t i) { return score[i]; });
    std::fill(acc, acc + s.d, A(0));
    for (int64_t i = 0; i < n; ++i) add_row(acc, dropped(score[i], t, i), v[i], s.d);
    A inverse = n ? A(1) / sum : A(0);
    for (int64_t i = 0; i < s.d; ++i) put(o[t][i], acc[i] * inverse);
    int64_t row = (b * s.h + h) * s.t + t;
    A lse = top + log_of(sum);
    if (op.out[1].dtype == ORR_F64)
      call.output<double>(1)[row] = double(lse);
    else
      call.output<float>(1)[row] = float(lse);
  }
}

template <class T>
void grad_head(const Call& call, const Shape& s, int64_t b, int64_t h) {
  using A = Acc<T>;
  const orr_op& op = call.op;
  auto input = [&](int i) { return Head<const T>(call.input<T>(i), op.in[i], b, h); };
  auto output = [&](int i) { return Head<T>(call.output<T>(i), op.out[i], b, h); };
  auto d_o = input(0), q = input(1), k = input(2), v = input(3), o = input(4);
  auto lse = [&](int64_t t) {
    int64_t row = (b * s.h + h) * s.t + t;
    return op.in[5].dtype == ORR_F64 ? A(call.input<double>(5)[row]) : A(call.input<float>(5)[row]);
  };
  A* dq = reinterpret_cast<A*>(call.workspace) + (b * s.h + h) * (2 * s.s + 1) * s.d;
  A *dk = dq + s.d, *dv = dk + s.s * s.d;
  const Dropped dropped(call, s, 6, b, h);
  std::fill(dk, dk + 2 * s.s * s.d, A(0));
  for (int64_t t = 0; t < s.t; ++t) {
    std::fill(dq, dq + s.d, A(0));
    A delta = dot(d_o[t], o[t], s.d);
    for (int64_t i = 0, n = s.seen(t); i < n; ++i) {
      A p = exp_of(dot(q[t], k[i], s.d) * A(s.scale) - lse(t));
      A ds = p * (dropped(dot(d_o[t], v[i], s.d), t, i) - delta) * A(s.scale);
      add_row(dq, ds, k[i], s.d);
      add_row(dk + i * s.d, ds, q[t], s.d);
      add_row(dv + i * s.d, dropped(p, t, i), d_o[t], s.d);
    }
    for (int64_t i = 0; i < s.d; ++i) put(output(0)[t][i], dq[i]);
  }
  for (int64_t r = 0; r < s.s; ++r)
    for (int64_t i = 0; i < s.d; ++i) {
      put(output(1)[r][i], dk[r * s.d + i]);
      put(output(2)[r][i], dv[r * s.d + i]);
    }
}

void run_forward(const Call& call) {
  Shape s(call.op, call.op.in[0], call.op.in[1]);
  with_real(call.op.in[0].dtype, [&]<class T>(Type<T>) {
    orr::parallel_for(s.b * s.h, [&](int64_t i) { forward_head<T>(call, s, i / s.h, i % s.h); });
  });
}

void run_grad(const Call& call) {
  Shape s(call.op, call.op.in[1], call.op.in[2]);
  with_real(call.op.in[1].dtype, [&]<class T>(Type<T>) {
    orr::parallel_for(s.b * s.h, [&](int64_t i) { grad_head<T>(call, s, i / s.h, i % s.h); });
  });
}

}  // namespace

const Family attention_family = {
    "attention", "reference.attention.1", check_forward, run_forward, forward_workspace, 7, 1,
    nullptr};
const Family attention_grad_family = {
    "attention_grad", "reference.attention.1", check_grad, run_grad, grad_workspace, 31, 7,
    nullptr};

}  // namespace reference
