// SPDX-License-Identifier: Apache-2.0
//
// attention: q[B,T,heads*D], k and v [B,S,kv_heads*D] -> o[B,T,heads*D], lse[B,heads,T]; the T x S
// matrix is never stored. Without int "kv_heads" there are as many as heads. Int "window" hides the
// keys that are so many places away, or more. A bias of [B,heads,T,S], whose dims but the last may
// be 1, is added to the scores. With real "dropout" and int "rng_id" seed, step and base follow.
// Kernels see [B,H,T,D] with strides (orrery/ops.h).
#include <orrery/kernel.h>

#include <stdexcept>
#include <string_view>

#include "program/attention_inputs.h"
#include "program/autodiff.h"
#include "program/build.h"
#include "program/op.h"
#include "program/plain_attention.h"
#include "program/wanted.h"

namespace orrery {

extern const PartsRule attention_parts;  // ops/attention_parts.cpp

namespace {

// All scores: [B,heads,T,S].
Dims score_dims(const Type& q, const Type& k, int64_t heads) {
  return {q.dims[0], heads, q.dims[1], k.dims[1]};
}

void check_bias(const Type& bias, const Type& q, const Dims& scores) {
  bool fits = bias.dims.size() == 4 && bias.dims[3] == scores[3] && bias.dtype == q.dtype;
  for (size_t d = 0; fits && d < 3; ++d) fits = bias.dims[d] == 1 || bias.dims[d] == scores[d];
  if (!fits)
    throw std::invalid_argument("the bias is " + to_string(bias) + ", wanted " +
                                to_string(Type{q.dtype, scores}) +
                                " or 1 for any of its dims but the last");
}

void check_heads(const Type& q, const Type& k, int64_t heads, int64_t kv_heads) {
  if (heads < 1 || q.dims[2] % heads)
    throw std::invalid_argument("width " + std::to_string(q.dims[2]) + " does not divide into " +
                                std::to_string(heads) + " heads");
  if (kv_heads < 1 || heads % kv_heads)
    throw std::invalid_argument(std::to_string(heads) + " heads are no multiple of " +
                                std::to_string(kv_heads) + " heads of keys and values");
  if (k.dims[2] != q.dims[2] / heads * kv_heads)
    throw std::invalid_argument("k and v are " + to_string(k) + ": " + std::to_string(kv_heads) +
                                " heads as wide as those of q have " +
                                std::to_string(q.dims[2] / heads * kv_heads) + " columns");
}

std::vector<Type> infer(const OpArgs& args) {
  const Type &q = args.in[0], &k = args.in[1], &v = args.in[2];
  int64_t heads = heads_of(args.attrs);
  std::string shapes = to_string(q) + ", " + to_string(k) + ", " + to_string(v);
  if (q.dims.size() != 3 || k.dims.size() != 3 || k != v || q.dtype != k.dtype ||
      q.dims[0] != k.dims[0] || !is_real(q.dtype))
    throw std::invalid_argument("needs q [B,T,C], k and v [B,S,C] of one real dtype, not " +
                                shapes + how_to_make_real(q.dtype));
  check_heads(q, k, heads, kv_heads_of(args.attrs));
  if (const int64_t window = attr_int(args.attrs, "window", 0); window < 0)
    throw std::invalid_argument("window is " + std::to_string(window) + ", expected 1 or more");
  if (has_bias("attention", args.in.size())) check_bias(args.in[3], q, score_dims(q, k, heads));
  const double dropout = attr_real(args.attrs, "dropout", 0);
  if (!(dropout >= 0 && dropout < 1) || (dropout > 0) != (args.in.size() > 5))
    throw std::invalid_argument("dropout " + std::to_string(dropout) +
                                " needs 0 <= dropout < 1 and, above 0, seed, step and base");
  return {q, {q.dtype == ORR_F64 ? ORR_F64 : ORR_F32, {q.dims[0], heads, q.dims[1]}}};
}

std::vector<Type> infer_grad(const OpArgs& args) {
  const Type &q = args.in[1], &k = args.in[2];
  std::vector<Type> out = {q, k, args.in[3]};
  if (attr_int(args.attrs, "bias_grad", 0))
    out.push_back({q.dtype, score_dims(q, k, heads_of(args.attrs))});
  return out;
}

Sharding sharding(const OpArgs& args, const std::vector<Type>& out) {
  Sharding s;
  const int64_t batch = args.in[0].dims[0];
  auto batch_only = [&](const Type& t) {
    std::vector<int> f(t.dims.size(), kNone);
    if (!f.empty() && t.dims[0] == batch) f[0] = 0;  // a bias may be one for all samples
    return f;
  };
  for (const Type& t : args.in) s.in.push_back(batch_only(t));
  for (const Type& t : out) s.out.push_back(batch_only(t));
  return s;
}

// -- gradients ------------------------------------------------------------------------------------

// [B,T,H*D] as [B,H,T,D], and back.
ValueId by_heads(Program& p, ValueId x, int64_t heads) {
  const Dims d = p.type(x).dims;
  return build::transpose(p, build::reshape(p, x, {d[0], d[1], heads, d[2] / heads}), {0, 2, 1, 3});
}
ValueId from_heads(Program& p, ValueId x) {
  const Dims d = p.type(x).dims;
  return build::reshape(p, build::transpose(p, x, {0, 2, 1, 3}), {d[0], d[2], d[1] * d[3]});
}

// The T x S matrix of weights exp(scale * q k^T + bias - lse), 0 where a query does not see a key,
// and the cotangents that those of it give q and k; all by head of the queries and in the dtype of
// lse.
class Weights {
 public:
  Weights(Program& program, const Op& op, ValueId query, ValueId key, ValueId lse)
      : p(program),
        heads(heads_of(op.attrs)),
        kv_heads(kv_heads_of(op.attrs)),
        dtype(p.type(lse).dtype),
        scale_(attr_real(op.attrs, "scale", 1)) {
    q = by_head(query), k = by_head_of_key(key);
    const Dims dims = p.type(lse).dims;
    ValueId s = scaled(build::matmul(p, q, k, false, true));
    const ValueId bias = bias_of(op);
    if (bias != kNone) s = p.pointwise(ORR_FN_ADD, {s, p.cast(bias, dtype)});
    if (bias != kNone || attr_int(op.attrs, "window", 0))  // of a query that sees nothing
      lse = p.pointwise(ORR_FN_MAX, {lse, Operand::number(-1e30)});
    s = p.pointwise(ORR_FN_SUB, {s, build::reshape(p, lse, {dims[0], dims[1], dims[2], 1})});
    w = p.pointwise(ORR_FN_EXP, {hidden(op, s, dims[2], p.type(key).dims[1])});
  }
  ValueId by_head(ValueId x) { return by_heads(p, p.cast(x, dtype), heads); }
  // Each head of keys or values as often as heads of queries read it.
  ValueId by_head_of_key(ValueId x) {
    return repeat_groups(p, by_heads(p, p.cast(x, dtype), kv_heads), 1, kv_heads, heads / kv_heads);
  }
  ValueId of_query(ValueId ds) { return from_heads(p, scaled(build::matmul(p, ds, k))); }
  ValueId of_key(ValueId ds) { return summed(scaled(build::matmul(p, ds, q, true))); }
  // What heads of queries give those of keys or values that they read.
  ValueId summed(ValueId x) {
    return from_heads(p, sum_groups(p, x, 1, kv_heads, heads / kv_heads));
  }

  Program& p;
  const int64_t heads, kv_heads;
  const int32_t dtype;
  ValueId q, k, w;

 private:
  ValueId scaled(ValueId x) { return p.pointwise(ORR_FN_MUL, {x, Operand::number(scale_)}); }

  // Scores below all others where a key is not seen by a query, so that their weights are 0 and
  // finite.
  ValueId hidden(const Op& op, ValueId scores, int64_t queries, int64_t keys) {
    const int64_t window = attr_int(op.attrs, "window", 0);
    const bool causal = attr_int(op.attrs, "causal", 0) != 0;
    if (!causal && !window) return scores;
    const ValueId seen = seen_by_place(p, queries, keys, causal, window,
                                       Operand::number(static_cast<double>(keys - queries)));
    return p.pointwise(ORR_FN_SELECT, {seen, scores, Operand::number(-1e4)});
  }

  const double scale_;
};

// d lse / d(scores) are the weights.
void add_lse(Gradient& g, const Op& op, ValueId dlse) {
  Program& p = g.p;
  const ValueId q = op.in[0], k = op.in[1], bias = bias_of(op);
  const bool of_bias = bias != kNone && g.wanted(bias);
  if (!g.wanted(q) && !g.wanted(k) && !of_bias) return;
  Weights a(p, op, q, k, op.out[1]);
  const Dims dims = p.type(dlse).dims;
  const ValueId ds =
      p.pointwise(ORR_FN_MUL, {a.w, build::reshape(p, dlse, {dims[0], dims[1], dims[2], 1})});
  if (g.wanted(q)) g.add(q, p.cast(a.of_query(ds), p.type(q).dtype));
  if (g.wanted(k)) g.add(k, p.cast(a.of_key(ds), p.type(k).dtype));
  if (of_bias) add_reduced(g, bias, ds);
}

void gradient(Gradient& g, const Op& op) {
  if (g.dy(1) != kNone) add_lse(g, op, g.dy(1));
  if (g.dy() == kNone) return;
  std::vector<ValueId> in = {g.dy(), op.in[0], op.in[1], op.in[2], op.out[0], op.out[1]};
  in.insert(in.end(), op.in.begin() + 3, op.in.end());
  Attrs attrs = op.attrs;
  const ValueId bias = bias_of(op);
  if (bias != kNone && g.wanted(bias)) attrs.set("bias_grad", int64_t{1});
  auto d = g.p.add("attention_grad", in, attrs);
  for (size_t i = 0; i < 3; ++i)
    if (g.wanted(op.in[i])) g.add(op.in[i], d[i]);
  if (d.size() == 4) add_reduced(g, bias, d[3]);
}

// With weights P and dP = do v^T: dv = P^T do, dS = P * (dP - sum(do * o)), which is what the bias
// gets, dq = dS k, dk = dS^T q.
std::vector<ValueId> grad_parts(Program& p, const Op& op) {
  Weights a(p, op, op.in[1], op.in[2], op.in[5]);
  const ValueId dy = a.by_head(op.in[0]), o = a.by_head(op.in[4]), v = a.by_head_of_key(op.in[3]);
  const ValueId row = build::reduce(p, "sum", p.pointwise(ORR_FN_MUL, {dy, o}), {-1}, true);
  const ValueId dw = build::matmul(p, dy, v, false, true);
  const ValueId ds = p.pointwise(ORR_FN_MUL, {a.w, p.pointwise(ORR_FN_SUB, {dw, row})});
  const ValueId dv = a.summed(build::matmul(p, a.w, dy, true));
  std::vector<ValueId> found = {a.of_query(ds), a.of_key(ds), dv};
  if (op.out.size() == 4) found.push_back(ds);
  for (ValueId& x : found) x = p.cast(x, p.type(op.out[0]).dtype);
  return found;
}

void grad_gradient(Gradient& g, const Op& op) {
  if (attr_real(op.attrs, "dropout", 0) > 0)
    g.p.fail_here(
        "attention with dropout has no second derivative: leave its dropout out, or write it with "
        "matmul, softmax and dropout");
  gradient_by_parts(g, op, grad_parts);
}

// [B,T,H*D] as [B,H,T,D].
Strided by_head(const Strided& x, int64_t heads) {
  int64_t d = x.dims[2] / heads;
  return {x.dtype,
          {x.dims[0], heads, x.dims[1], d},
          {x.strides[0], d * x.strides[2], x.strides[1], x.strides[2]}};
}

// The bias [B,H,T,S], with strides 0 where it is one for all.
Strided over_scores(const Strided& bias, const Strided& q, int64_t heads) {
  const Dims dims = {q.dims[0], heads, q.dims[1], bias.dims[3]};
  return {bias.dtype, dims, strides_in(bias, dims)};
}

bool has_dense_rows(const Strided& x) { return x.strides.back() == 1 || x.dims.back() == 1; }

KernelForm form(const Op& op, const std::vector<Strided>& in, const std::vector<Strided>& out) {
  KernelForm f;
  const int64_t heads = heads_of(op.attrs), kv_heads = kv_heads_of(op.attrs);
  const size_t operands = operands_of(op.kind), key = query_of(op.kind) + 1;
  const auto is_key = [](size_t i, size_t first) { return i == first || i == first + 1; };
  const bool biased = has_bias(op.kind, in.size());
  for (size_t i = 0; i < in.size(); ++i) {
    if (i >= operands + biased) {
      f.in.push_back({in[i].dtype, {}, {}});
      continue;
    }
    const bool lse = i == 5, bias = i == operands;
    if (lse ? !in[i].is_contiguous() : !has_dense_rows(in[i]))
      f.copy.push_back(static_cast<int>(i));
    f.in.push_back(lse    ? Strided::contiguous({in[i].dtype, in[i].dims})
                   : bias ? over_scores(in[i], in[query_of(op.kind)], heads)
                          : by_head(in[i], is_key(i, key) ? kv_heads : heads));
  }
  for (size_t i = 0; i < out.size(); ++i) {
    const bool whole = op.kind == "attention" ? i == 1 : i == 3;  // lse, the gradient of the bias
    f.out_ok = f.out_ok && (whole ? out[i].is_contiguous() : out[i].strides[2] == 1);
    const bool of_key = op.kind == "attention_grad" && is_key(i, 1);
    f.out.push_back(whole ? out[i] : by_head(out[i], of_key ? kv_heads : heads));
  }
  return f;
}

// The sum over so many queries, the last of which stands at `last`, of how many of n keys are
// before it: all areas under a line that is cut off at 0 and n.
double keys_before(double last, double queries, double n) {
  const auto area = [n](double x) {
    return x <= 0 ? 0 : x < n ? x * x / 2 : n * n / 2 + n * (x - n);
  };
  return area(last) - area(last - queries);
}

// How many pairs of a query and a key that it sees there are, to half a key for each query.
double pairs_seen(const Attrs& attrs, double queries, double keys) {
  const auto window = static_cast<double>(attr_int(attrs, "window", 0));
  const bool causal = attr_int(attrs, "causal", 0) != 0;
  if (!causal && window == 0) return queries * keys;
  const double reach = causal ? window : window - 0.5;  // of the middle of a query's place
  const double end = keys_before(causal ? keys : keys + reach, queries, keys);
  return window == 0 ? end : end - keys_before(keys - reach, queries, keys);
}

Cost cost(const OpArgs& args, const std::vector<Type>& out) {
  Cost c = touch_cost(args, out);
  bool grad = args.kind == "attention_grad";
  const Dims &q = args.in[grad ? 1 : 0].dims, &k = args.in[grad ? 2 : 1].dims;
  c.matrix = true;
  c.flops = (grad ? 5 : 2) * 2.0 * static_cast<double>(q[0] * q[2]) *
            pairs_seen(args.attrs, static_cast<double>(q[1]), static_cast<double>(k[1]));
  return c;
}

uint32_t kernel_needs(const orr_op& op, const orr_tensor& q, const orr_tensor& k) {
  uint32_t found = k.dims[1] < q.dims[1] ? ORR_TAKES_GROUPED_HEADS : 0;
  for (int32_t i = 0; i < op.n_attrs; ++i)
    if (std::string_view(op.attrs[i].name) == "window") found |= ORR_TAKES_WINDOW;
  return found;
}

uint32_t must_take(const orr_op& op) { return kernel_needs(op, op.in[0], op.in[1]); }
uint32_t must_take_of_grad(const orr_op& op) { return kernel_needs(op, op.in[1], op.in[2]); }

}  // namespace

extern const OpDef attention_op{"attention",      infer,   sharding, gradient, cost, form,
                                &attention_parts, nullptr, must_take};
extern const OpDef attention_grad_op{"attention_grad", infer_grad, sharding,
                                     grad_gradient,    cost,       form,
                                     &attention_parts, nullptr,    must_take_of_grad};

}  // namespace orrery
