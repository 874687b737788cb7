// SPDX-License-Identifier: Apache-2.0
#include <orrery/ops.h>

#include <array>
#include <cmath>

#include "conformance/kernel/cases.h"

namespace kernel_suite {
namespace {

struct Sizes {
  explicit Sizes(const orr_tensor& q, const orr_tensor& k)
      : per_row(size_t(q.dims[1])),
        readers(per_row / size_t(k.dims[1])),
        heads(size_t(q.dims[0] * q.dims[1])),
        t(size_t(q.dims[2])),
        s(size_t(k.dims[2])),
        d(size_t(q.dims[3])) {}
  size_t per_row, readers, heads, t, s, d;  // readers: heads of queries to one of keys
  // Where the keys, or values, that a head of queries reads begin.
  size_t keys_of(size_t head) const { return head / readers * s * d; }
};

// Whether a case has a bias behind so many inputs.
bool has_bias(const Case& c, size_t operands) { return (c.in.size() - operands) % 3 == 1; }

// Whether query i sees key j by its place.
bool sees(const Case& c, const Sizes& z, size_t i, size_t j) {
  const int64_t lag = int64_t(i) - int64_t(z.t) - (int64_t(j) - int64_t(z.s)),
                window = c.attr("window", 0);
  if (c.attr("causal", 0)) return lag >= 0 && (window == 0 || lag < window);
  return window == 0 || std::abs(lag) < window;
}

// The scores of query i of a head; -inf where the key is not seen. `bias`: what is added to them.
Values scores(const Case& c, const Sizes& z, const double* q, const double* k, const double* bias,
              size_t i) {
  Values s(z.s, -HUGE_VAL);
  for (size_t j = 0; j < z.s; ++j) {
    if (!sees(c, z, i, j)) continue;
    s[j] = 0;
    for (size_t e = 0; e < z.d; ++e)
      s[j] += q[i * z.d + e] * k[j * z.d + e] * c.real_attr("scale", 1);
    if (bias) s[j] += bias[i * z.s + j];
  }
  return s;
}

// What dropout makes of the weights of query i of a head: 0, or a factor. `scalars`: seed, step,
// base.
Values kept(const Case& c, const Sizes& z, const Values* scalars, size_t head, size_t i) {
  Values factors(z.s, 1.0);
  const auto rate = float(c.real_attr("dropout", 0));
  if (rate == 0) return factors;
  const auto all = size_t(c.attr("head_total", int64_t(z.per_row)));
  const size_t h = head % z.per_row + size_t(c.attr("head_lo", 0));
  const size_t first = ((head / z.per_row * all + h) * z.t + i) * z.s + size_t(scalars[2][0]);
  for (size_t j = 0; j < z.s; ++j)
    factors[j] = orr_uniform(uint64_t(scalars[0][0]), uint32_t(c.attr("rng_id", 0)),
                             uint32_t(scalars[1][0]), first + j) < rate
                     ? 0
                     : 1 / (1 - double(rate));
  return factors;
}

// o and lse of x[first], ..., which are q, k, v; bias and scalars stand from x[behind] on.
std::vector<Values> forward(const Case& c, const Sizes& z, const std::vector<Values>& x,
                            size_t first, size_t behind) {
  const Values &q = x[first], &k = x[first + 1], &v = x[first + 2];
  const bool biased = has_bias(c, behind);
  const Values* scalars = x.data() + behind + biased;
  Values o(q.size()), lse;
  for (size_t h = 0; h < z.heads; ++h)
    for (size_t i = 0; i < z.t; ++i) {
      const double* bias = biased ? &x[behind][h * z.t * z.s] : nullptr;
      Values s = scores(c, z, &q[h * z.t * z.d], &k[z.keys_of(h)], bias, i);
      const Values keep = kept(c, z, scalars, h, i);
      double sum = 0;
      for (double e : s) sum += std::exp(e);
      for (size_t j = 0; j < z.s && sum > 0; ++j)
        for (size_t e = 0; e < z.d; ++e)
          o[(h * z.t + i) * z.d + e] +=
              keep[j] * std::exp(s[j]) / sum * v[z.keys_of(h) + j * z.d + e];
      lse.push_back(std::log(sum));
    }
  return {o, lse};
}

std::vector<Values> forward_oracle(const Case& c, const std::vector<Values>& x) {
  return forward(c, Sizes(c.in[0], c.in[1]), x, 0, 3);
}

std::vector<Values> grad_oracle(const Case& c, const std::vector<Values>& x) {
  Sizes z(c.in[1], c.in[2]);
  const Values &d_o = x[0], &q = x[1], &k = x[2], &v = x[3], &o = x[4], &lse = x[5];
  const bool biased = has_bias(c, 6);
  Values dq(q.size()), dk(k.size()), dv(v.size()), slope(biased ? x[6].size() : 0);
  for (size_t h = 0; h < z.heads; ++h)
    for (size_t i = 0; i < z.t; ++i) {
      size_t row = (h * z.t + i) * z.d;
      const double* bias = biased ? &x[6][h * z.t * z.s] : nullptr;
      Values s = scores(c, z, &q[h * z.t * z.d], &k[z.keys_of(h)], bias, i);
      const Values keep = kept(c, z, x.data() + 6 + biased, h, i);
      for (size_t j = 0; j < z.s; ++j) {
        if (std::isinf(s[j])) continue;
        const size_t key = z.keys_of(h) + j * z.d;
        double p = std::exp(s[j] - lse[h * z.t + i]), dp = 0;
        for (size_t e = 0; e < z.d; ++e) dp += d_o[row + e] * (keep[j] * v[key + e] - o[row + e]);
        if (biased) slope[(h * z.t + i) * z.s + j] = p * dp;
        for (size_t e = 0; e < z.d; ++e) {
          dq[row + e] += p * dp * c.real_attr("scale", 1) * k[key + e];
          dk[key + e] += p * dp * c.real_attr("scale", 1) * q[row + e];
          dv[key + e] += keep[j] * p * d_o[row + e];
        }
      }
    }
  if (c.out.size() == 3) return {dq, dk, dv};
  return {dq, dk, dv, slope};
}

// A bias of which some elements, and all of some rows, are -inf. What lies at one place in memory
// is one number.
Values hidden(const orr_tensor& bias) {
  Values v;
  for (int64_t e = 0, n = elements(bias); e < n; ++e) {
    int64_t at = 0, rest = e;
    for (int d = 3; d >= 0; rest /= bias.dims[d--]) at += rest % bias.dims[d] * bias.strides[d];
    const bool hides = at % 5 == 1 || at / bias.dims[3] % 4 == 3;
    v.push_back(hides ? -HUGE_VAL : double(at * 5 % 17 - 8) / 8);
  }
  return v;
}

void fit_bias(const Case& c, std::vector<Values>& x) { x[3] = hidden(c.in[3]); }

// The bias of a window: each query sees the keys near to it, so that whole blocks are hidden.
Values window(const orr_tensor& bias) {
  Values v;
  for (int64_t e = 0, n = elements(bias), keys = bias.dims[3]; e < n; ++e)
    v.push_back(std::abs(e / keys % bias.dims[2] - e % keys) < 20 ? 0 : -HUGE_VAL);
  return v;
}

void fit_window(const Case& c, std::vector<Values>& x) { x[3] = window(c.in[3]); }

void fit_outputs(const Case& c, std::vector<Values>& x) {
  if (has_bias(c, 6)) x[6] = c.note.ends_with("window") ? window(c.in[6]) : hidden(c.in[6]);
  auto o = forward(c, Sizes(c.in[1], c.in[2]), x, 1, 6);
  x[4] = o[0];
  x[5] = o[1];
}

// [B,H,L,D] as it lies after a projection: [B,L,H,D] (with `gap` more columns between rows).
orr_tensor heads(int32_t dtype, int64_t b, int64_t h, int64_t l, int64_t d, int64_t gap) {
  int64_t row = h * d + gap;
  return strided(dtype, {b, h, l, d}, {l * row, d, row, 1});
}

Case attention(int32_t dtype, int64_t b, int64_t h, int64_t t, int64_t s, int64_t d, bool causal,
               bool dense) {
  Case c;
  c.kind = "attention";
  c.note = shape_note({b, h, t, s, d}) + (causal ? "causal" : "full") + (dense ? "" : "strided");
  auto make = [&](int64_t l, int64_t gap) {
    return dense ? tensor(dtype, {b, h, l, d}) : heads(dtype, b, h, l, d, gap);
  };
  c.in = {make(t, 2 * h * d), make(s, 2 * h * d), make(s, 2 * h * d)};
  c.out = {make(t, 0), tensor(wide(dtype), {b, h, t})};
  c.attrs = {real("scale", 1 / std::sqrt(double(d))), integer("causal", causal)};
  c.oracle = forward_oracle;
  c.depth = double(s + d);
  if (b == 256) c.axes = {{{0, 0, 0}, {0, 0}}};
  if (h == 256) c.axes = {{{1, 1, 1}, {1, 1}}};
  return c;
}

// The same with a bias, which dims that are not `own` share.
Case with_bias(Case c, std::array<bool, 4> own) {
  const orr_tensor &q = c.in[0], &k = c.in[1];
  std::vector<int64_t> dims = {q.dims[0], q.dims[1], q.dims[2], k.dims[2]}, strides(4);
  int64_t step = 1;
  c.note += "bias";
  for (size_t d = 4; d-- > 0; c.note += own[d] ? "1" : "0")
    strides[d] = own[d] ? step : 0, step *= own[d] ? dims[d] : 1;
  c.in.insert(c.in.begin() + 3, strided(q.dtype, dims, strides));
  c.derive = fit_bias;
  return c;
}

// The same where queries see the keys near to them.
Case with_window(Case c) {
  c = with_bias(std::move(c), {0, 0, 1, 1});
  c.note += "window";
  c.derive = fit_window;
  return c;
}

// The same with fewer heads of keys and values.
Case in_groups(Case c, int64_t groups) {
  for (size_t i = 1; i < 3; ++i) {
    const int64_t* d = c.in[i].dims;
    const int64_t row = c.in[i].strides[2];  // that of a dense one is the depth
    c.in[i] = row == d[3] ? tensor(c.in[i].dtype, {d[0], groups, d[2], d[3]})
                          : heads(c.in[i].dtype, d[0], groups, d[2], d[3], 16);
  }
  c.note += "groups" + std::to_string(groups);
  return c;
}

// The same with a window of so many keys.
Case near(Case c, int64_t keys) {
  c.note += "near" + std::to_string(keys);
  c.attrs.push_back(integer("window", keys));
  return c;
}

// The same with dropout, of heads [lo, lo + H) of `all`.
Case with_dropout(Case c, double rate, int64_t lo, int64_t all) {
  c.note += "dropout";
  c.in.insert(c.in.end(), 3, tensor(ORR_I64, {}));
  c.attrs.push_back(real("dropout", rate));
  c.attrs.push_back(integer("rng_id", 77));
  if (all) c.attrs.push_back(integer("head_lo", lo)), c.attrs.push_back(integer("head_total", all));
  c.fills = {normal(), normal(), normal(), values({1234567}), values({9}), values({1000})};
  return c;
}

Case attention_grad(const Case& f) {
  Case c = f;
  c.kind = "attention_grad";
  c.in = {f.out[0], f.in[0], f.in[1], f.in[2], f.out[0], f.out[1]};
  c.in.insert(c.in.end(), f.in.begin() + 3, f.in.end());
  if (!f.fills.empty()) c.fills.insert(c.fills.begin(), 3, normal());
  c.out = {f.in[0], f.in[1], f.in[2]};
  if (has_bias(f, 3)) {
    const int64_t* d = f.in[3].dims;
    c.out.push_back(tensor(f.in[0].dtype, {d[0], d[1], d[2], d[3]}));
    c.attrs.push_back(integer("bias_grad", 1));
  }
  c.derive = fit_outputs;
  c.oracle = grad_oracle;
  for (Axis& a : c.axes) a = {std::vector<int>(6, a.in[0]), std::vector<int>(3, a.in[0])};
  return c;
}

}  // namespace

std::vector<Case> attention_cases() {
  std::vector<Case> forward;
  for (int32_t dtype : kReals) {
    for (bool causal : {false, true})
      for (bool dense : {false, true}) {
        for (int64_t t : {1, 2, 17, 64, 129})
          forward.push_back(attention(dtype, 2, 3, t, t, 8, causal, dense));
        forward.push_back(attention(dtype, 1, 2, 5, 70, 16, causal, dense));
        forward.push_back(attention(dtype, 1, 2, 33, 33, 33, causal, dense));
        forward.push_back(attention(dtype, 1, 1, 3, 3, 1, causal, dense));
      }
    for (bool causal : {false, true}) {
      forward.push_back(with_dropout(attention(dtype, 2, 3, 17, 17, 8, causal, true), 0.5, 0, 0));
      forward.push_back(with_dropout(attention(dtype, 2, 2, 9, 12, 8, causal, false), 0.2, 3, 8));
    }
    forward.push_back(with_dropout(attention(dtype, 1, 2, 129, 260, 64, true, false), 0.1, 0, 0));
    forward.push_back(with_dropout(attention(dtype, 1, 2, 4, 6, 5, true, true), 0.4, 1, 4));
    for (bool causal : {false, true}) {
      for (int64_t t : {1, 17, 129})
        forward.push_back(with_bias(attention(dtype, 2, 3, t, t, 8, causal, true), {1, 1, 1, 1}));
      const Case uneven = attention(dtype, 2, 2, 9, 150, 16, causal, false);
      forward.push_back(with_bias(uneven, {1, 0, 0, 1}));
      forward.push_back(with_bias(uneven, {0, 1, 1, 1}));
      Case dropped = with_dropout(with_bias(uneven, {0, 1, 0, 1}), 0.2, 3, 8);
      dropped.fills.insert(dropped.fills.begin(), normal());
      forward.push_back(dropped);
    }
    forward.push_back(with_window(attention(dtype, 1, 2, 70, 290, 8, false, true)));
    forward.push_back(with_window(attention(dtype, 1, 1, 290, 70, 8, false, false)));
    for (bool causal : {false, true}) {
      const Case tiny = attention(dtype, 1, 4, 3, 5, 4, causal, true);
      forward.push_back(in_groups(tiny, 2));
      forward.push_back(near(tiny, 2));
      forward.push_back(near(in_groups(tiny, 1), 3));
      const Case few = attention(dtype, 2, 4, 5, 9, 8, causal, true);
      const Case uneven = attention(dtype, 1, 6, 9, 150, 16, causal, false);
      forward.push_back(in_groups(few, 2));
      forward.push_back(in_groups(few, 1));
      forward.push_back(in_groups(uneven, 3));
      forward.push_back(in_groups(with_bias(uneven, {1, 1, 1, 1}), 2));
      forward.push_back(in_groups(with_dropout(uneven, 0.2, 3, 12), 2));
      forward.push_back(near(few, 3));
      forward.push_back(near(attention(dtype, 1, 2, 9, 5, 8, causal, true), 2));
      forward.push_back(near(attention(dtype, 1, 2, 290, 290, 8, causal, true), 40));
      forward.push_back(near(attention(dtype, 1, 1, 300, 129, 8, causal, false), 70));
      forward.push_back(near(attention(dtype, 1, 1, 70, 400, 16, causal, true), 130));
      forward.push_back(near(attention(dtype, 1, 2, 33, 33, 64, causal, true), 1));
      forward.push_back(near(in_groups(with_bias(uneven, {0, 1, 0, 1}), 3), 20));
      forward.push_back(near(in_groups(with_dropout(uneven, 0.2, 0, 0), 3), 20));
    }
    forward.push_back(attention(dtype, 256, 1, 9, 9, 4, true, true));
    forward.push_back(attention(dtype, 1, 256, 6, 9, 4, true, false));
  }
  std::vector<Case> cases;
  for (const Case& c : forward) cases.push_back(c), cases.push_back(attention_grad(c));
  return cases;
}

}  // namespace kernel_suite
