// SPDX-License-Identifier: Apache-2.0
//
// pointwise: one scalar expression for every element, with broadcasting from the right.
#include <algorithm>
#include <stdexcept>

#include "base/error.h"
#include "program/build.h"
#include "program/eight_bits.h"
#include "program/on_parts.h"
#include "program/strided.h"

namespace orrery {
namespace {

Dims broadcast_dims(const std::vector<Type>& in) {
  Dims dims;
  for (const Type& t : in) {
    if (t.dims.size() > dims.size()) dims.insert(dims.begin(), t.dims.size() - dims.size(), 1);
    for (size_t i = 0; i < t.dims.size(); ++i) {
      int64_t& d = dims[dims.size() - t.dims.size() + i];
      if (d == 1)
        d = t.dims[i];
      else if (t.dims[i] != 1 && t.dims[i] != d) {
        std::string shapes;
        for (const Type& each : in)
          shapes += (shapes.empty() ? "" : " and ") + to_string(each.dims);
        throw std::invalid_argument("shapes do not fit together: " + shapes);
      }
    }
  }
  return dims;
}

std::vector<Type> infer(const OpArgs& args) {
  Dims dims = args.attrs.has("dims") ? attr_ints(args.attrs, "dims") : broadcast_dims(args.in);
  std::vector<Type> out;
  for (int32_t o : args.expr.outputs)
    out.push_back({args.expr.instrs[static_cast<size_t>(o)].dtype, dims});
  return out;
}

Sharding sharding(const OpArgs& args, const std::vector<Type>& out) {
  size_t rank = out[0].dims.size();
  auto factors = [&](const Type& t) {
    std::vector<int> f(t.dims.size(), kNone);
    for (size_t i = 0; i < t.dims.size(); ++i) {
      size_t at = rank - t.dims.size() + i;
      if (t.dims[i] == out[0].dims[at]) f[i] = static_cast<int>(at);
    }
    return f;
  };
  Sharding s;
  for (const Type& t : args.in) s.in.push_back(factors(t));
  for (const Type& t : out) s.out.push_back(factors(t));
  return s;
}

KernelForm form(const Op& op, const std::vector<Strided>& in, const std::vector<Strided>& out) {
  KernelForm f;
  const Dims& dims = out[0].dims;
  std::vector<Dims> strides;
  for (const Strided& x : in) strides.push_back(strides_in(x, dims));
  for (const Strided& x : out) strides.push_back(x.strides);
  // In the order in which memory holds the result; neighbours that every tensor walks as one merge.
  Dims merged;
  std::vector<Dims> kept(strides.size());
  const bool any_order = !draws(op.expr);
  for (size_t i : order_in_memory(any_order ? out[0] : Strided::contiguous({0, dims}))) {
    bool join = !merged.empty();
    for (size_t t = 0; join && t < strides.size(); ++t)
      join = kept[t].back() == strides[t][i] * dims[i];
    if (join)
      merged.back() *= dims[i];
    else
      merged.push_back(dims[i]);
    for (size_t t = 0; t < strides.size(); ++t) {
      if (join)
        kept[t].back() = strides[t][i];
      else
        kept[t].push_back(strides[t][i]);
    }
  }
  if (merged.empty()) {
    merged = {1};
    for (size_t t = 0; t < strides.size(); ++t) kept[t] = {t < in.size() ? 0 : 1};
  }
  for (size_t t = 0; t < in.size(); ++t) f.in.push_back({in[t].dtype, merged, kept[t]});
  for (size_t t = 0; t < out.size(); ++t)
    f.out.push_back({out[t].dtype, merged, kept[in.size() + t]});
  return f;
}

}  // namespace

// Over the batch, too, where x is the same for its one sample.
void add_reduced(Gradient& g, ValueId x, ValueId dx) {
  Dims from = g.p.type(dx).dims, to = g.p.type(x).dims, over;
  const Value& d = g.p.value(dx);
  const bool shared = d.batch() == Batch::sharded && g.p.value(x).batch() != Batch::sharded;
  size_t shift = from.size() - to.size();
  for (size_t i = 0; i < from.size(); ++i)
    if (i < shift || (to[i - shift] == 1 &&
                      (from[i] != 1 || (shared && i == static_cast<size_t>(d.batch_dim())))))
      over.push_back(static_cast<int64_t>(i));
  if (!over.empty()) dx = build::reduce(g.p, "sum", dx, over, true);
  if (g.p.type(dx).dims != to) dx = build::reshape(g.p, dx, to);
  if (g.p.type(dx).dtype != g.p.type(x).dtype) dx = g.p.cast(dx, g.p.type(x).dtype);
  g.add(x, dx);
}

namespace {

// An operand of the op's last instruction: a value or a number.
struct Side {
  Operand operand = Operand::number(0);
  ValueId input = kNone;
};

Side side(const Op& op, int32_t reg) {
  const orr_instr& i = op.expr.instrs[static_cast<size_t>(reg)];
  if (i.fn == ORR_FN_INPUT) {
    ValueId v = op.in[static_cast<size_t>(i.a)];
    return {Operand(v), v};
  }
  return {Operand::number(i.imm), kNone};
}

using Fn = std::vector<Operand>;

// The second derivative of gelu (orrery/ops.h), with t = tanh(u), u = c * (x + a * x^3):
// (1 - t^2) * (u' - x * t * u'^2 + 3 * c * a * x^2), u' = c + 3 * c * a * x^2.
// From |x| = 8 on t is 1 and this 0; no power of x may overflow there.
ValueId gelu_curvature(Program& p, Operand x) {
  const double c = 0.7978845608028654, a = 0.044715;
  auto f = [&](int32_t fn, Fn args) { return p.pointwise(fn, args); };
  auto num = [](double v) { return Operand::number(v); };
  x = f(ORR_FN_MIN, {f(ORR_FN_MAX, {x, num(-8)}), num(8)});
  const ValueId square = f(ORR_FN_MUL, {x, x});
  const ValueId cubic = f(ORR_FN_MUL, {square, num(3 * c * a)});
  const ValueId slope = f(ORR_FN_ADD, {cubic, num(c)});
  const ValueId u =
      f(ORR_FN_MUL, {x, f(ORR_FN_ADD, {f(ORR_FN_MUL, {square, num(c * a)}), num(c)})});
  const ValueId t = f(ORR_FN_TANH, {u});
  const ValueId bent = f(ORR_FN_MUL, {f(ORR_FN_MUL, {x, t}), f(ORR_FN_MUL, {slope, slope})});
  const ValueId sum = f(ORR_FN_SUB, {f(ORR_FN_ADD, {slope, cubic}), bent});
  return f(ORR_FN_MUL, {f(ORR_FN_SUB, {num(1), f(ORR_FN_MUL, {t, t})}), sum});
}

// d(result)/d(first operand) times dy, for functions of one real argument x with result y.
ValueId unary_slope(Program& p, int32_t fn, Operand x, ValueId y, ValueId dy) {
  auto f = [&](int32_t fn, Fn args) { return p.pointwise(fn, args); };
  auto num = [](double v) { return Operand::number(v); };
  switch (fn) {
    case ORR_FN_NEG: return f(ORR_FN_NEG, {dy});
    case ORR_FN_ABS: return f(ORR_FN_MUL, {dy, f(ORR_FN_SIGN, {x})});
    case ORR_FN_SQRT: return f(ORR_FN_DIV, {f(ORR_FN_MUL, {dy, num(0.5)}), y});
    case ORR_FN_RSQRT:
      return f(ORR_FN_MUL,
               {f(ORR_FN_MUL, {dy, num(-0.5)}), f(ORR_FN_MUL, {y, f(ORR_FN_MUL, {y, y})})});
    case ORR_FN_RECIP: return f(ORR_FN_NEG, {f(ORR_FN_MUL, {dy, f(ORR_FN_MUL, {y, y})})});
    case ORR_FN_EXP: return f(ORR_FN_MUL, {dy, y});
    case ORR_FN_LOG: return f(ORR_FN_DIV, {dy, x});
    case ORR_FN_TANH: return f(ORR_FN_MUL, {dy, f(ORR_FN_SUB, {num(1), f(ORR_FN_MUL, {y, y})})});
    case ORR_FN_SIGMOID: return f(ORR_FN_MUL, {dy, f(ORR_FN_MUL, {y, f(ORR_FN_SUB, {num(1), y})})});
    case ORR_FN_ERF: {  // 2/sqrt(pi) exp(-x^2)
      ValueId e = f(ORR_FN_EXP, {f(ORR_FN_NEG, {f(ORR_FN_MUL, {x, x})})});
      return f(ORR_FN_MUL, {dy, f(ORR_FN_MUL, {e, num(1.1283791670955126)})});
    }
    case ORR_FN_SIN: return f(ORR_FN_MUL, {dy, f(ORR_FN_COS, {x})});
    case ORR_FN_COS: return f(ORR_FN_NEG, {f(ORR_FN_MUL, {dy, f(ORR_FN_SIN, {x})})});
    case ORR_FN_GELU: return f(ORR_FN_MUL, {dy, f(ORR_FN_GELU_GRAD, {x})});
    case ORR_FN_GELU_GRAD: return f(ORR_FN_MUL, {dy, gelu_curvature(p, x)});
    default: return kNone;  // piecewise constant: sign, floor, comparisons
  }
}

// Of a^b. Where b is 0 the result is 1 whatever a is, and 0^b is 0 or 1 whatever b is: the slopes
// are 0, and not 0 times the infinity of 0^-1 or of log(0).
void power_gradient(Gradient& g, const Op& op, ValueId dy, const Side& a, const Side& b) {
  Program& p = g.p;
  auto f = [&](int32_t fn, Fn args) { return p.pointwise(fn, args); };
  const Operand zero = Operand::number(0);
  if (a.input != kNone && g.wanted(a.input)) {
    const bool fixed = b.input == kNone;
    if (fixed && b.operand.value == 0) return;
    const Operand less = fixed ? Operand::number(b.operand.value - 1)
                               : Operand(f(ORR_FN_SUB, {b.operand, Operand::number(1)}));
    ValueId slope = f(ORR_FN_MUL, {f(ORR_FN_POW, {a.operand, less}), b.operand});
    if (!fixed) slope = f(ORR_FN_SELECT, {f(ORR_FN_EQ, {b.operand, zero}), zero, slope});
    add_reduced(g, a.input, f(ORR_FN_MUL, {dy, slope}));
  }
  if (b.input == kNone || !g.wanted(b.input)) return;
  const Operand base = a.input == kNone ? p.constant(a.operand.value, p.type(dy).dtype) : a.operand;
  const ValueId flat = f(ORR_FN_AND, {f(ORR_FN_EQ, {base, zero}), f(ORR_FN_GE, {b.operand, zero})});
  const ValueId slope = f(ORR_FN_MUL, {op.out[0], f(ORR_FN_LOG, {base})});
  add_reduced(g, b.input, f(ORR_FN_MUL, {dy, f(ORR_FN_SELECT, {flat, zero, slope})}));
}

void binary_gradient(Gradient& g, const Op& op, const orr_instr& last, ValueId dy) {
  Program& p = g.p;
  auto f = [&](int32_t fn, Fn args) { return p.pointwise(fn, args); };
  Side a = side(op, last.a), b = side(op, last.b);
  bool want_a = a.input != kNone && g.wanted(a.input),
       want_b = b.input != kNone && g.wanted(b.input);
  ValueId y = op.out[0];
  auto masked = [&](int32_t compare) {
    return f(ORR_FN_SELECT, {f(compare, {a.operand, b.operand}), dy, Operand::number(0)});
  };
  switch (last.fn) {
    case ORR_FN_ADD:
      if (want_a) add_reduced(g, a.input, dy);
      if (want_b) add_reduced(g, b.input, dy);
      return;
    case ORR_FN_SUB:
      if (want_a) add_reduced(g, a.input, dy);
      if (want_b) add_reduced(g, b.input, f(ORR_FN_NEG, {dy}));
      return;
    case ORR_FN_MUL:
      if (want_a) add_reduced(g, a.input, f(ORR_FN_MUL, {dy, b.operand}));
      if (want_b) add_reduced(g, b.input, f(ORR_FN_MUL, {dy, a.operand}));
      return;
    case ORR_FN_DIV:
      if (want_a) add_reduced(g, a.input, f(ORR_FN_DIV, {dy, b.operand}));
      if (want_b)
        add_reduced(g, b.input,
                    f(ORR_FN_NEG, {f(ORR_FN_DIV, {f(ORR_FN_MUL, {dy, y}), b.operand})}));
      return;
    case ORR_FN_MIN:
    case ORR_FN_MAX:  // ties go to the first operand
      if (want_a) add_reduced(g, a.input, masked(last.fn == ORR_FN_MIN ? ORR_FN_LE : ORR_FN_GE));
      if (want_b) add_reduced(g, b.input, masked(last.fn == ORR_FN_MIN ? ORR_FN_GT : ORR_FN_LT));
      return;
    case ORR_FN_MOD:  // a - floor(a/b)*b
      if (want_a) add_reduced(g, a.input, dy);
      if (want_b) {
        ValueId times = f(ORR_FN_FLOOR, {f(ORR_FN_DIV, {a.operand, b.operand})});
        add_reduced(g, b.input, f(ORR_FN_NEG, {f(ORR_FN_MUL, {dy, times})}));
      }
      return;
    case ORR_FN_POW: return power_gradient(g, op, dy, a, b);
    default: return;
  }
}

void select_gradient(Gradient& g, const Op& op, const orr_instr& last, ValueId dy) {
  Side mask = side(op, last.a), b = side(op, last.b), c = side(op, last.c);
  Operand zero = Operand::number(0);
  if (b.input != kNone && g.wanted(b.input))
    add_reduced(g, b.input, g.p.pointwise(ORR_FN_SELECT, {mask.operand, dy, zero}));
  if (c.input != kNone && g.wanted(c.input))
    add_reduced(g, c.input, g.p.pointwise(ORR_FN_SELECT, {mask.operand, zero, dy}));
}

void fma_gradient(Gradient& g, const Op& op, const orr_instr& last, ValueId dy) {
  Side a = side(op, last.a), b = side(op, last.b), c = side(op, last.c);
  auto want = [&](const Side& s) { return s.input != kNone && g.wanted(s.input); };
  if (want(a)) add_reduced(g, a.input, g.p.pointwise(ORR_FN_MUL, {dy, b.operand}));
  if (want(b)) add_reduced(g, b.input, g.p.pointwise(ORR_FN_MUL, {dy, a.operand}));
  if (want(c)) add_reduced(g, c.input, dy);
}

// L1 expressions hold one function; fused ones exist only after lowering.
void gradient(Gradient& g, const Op& op) {
  const orr_instr& last = op.expr.instrs.back();
  ValueId dy = g.dy();
  if (last.fn == ORR_FN_INPUT || last.fn == ORR_FN_CAST) {
    Side x = side(
        op, last.fn == ORR_FN_INPUT ? static_cast<int32_t>(op.expr.instrs.size()) - 1 : last.a);
    if (x.input != kNone && is_any_real(g.p.type(x.input).dtype) && g.wanted(x.input))
      add_reduced(g, x.input, dy);
    return;
  }
  int arity = scalar_fn(last.fn).arity;
  if (last.fn == ORR_FN_SELECT) return select_gradient(g, op, last, dy);
  if (last.fn == ORR_FN_FMA) return fma_gradient(g, op, last, dy);
  if (arity == 2) return binary_gradient(g, op, last, dy);
  if (arity != 1) return;
  Side x = side(op, last.a);
  if (x.input == kNone || !g.wanted(x.input)) return;
  ValueId dx = unary_slope(g.p, last.fn, x.operand, op.out[0], dy);
  if (dx != kNone) add_reduced(g, x.input, dx);
}

Cost cost(const OpArgs& args, const std::vector<Type>& out) {
  Cost c = touch_cost(args, out);
  double work = 0;
  for (const orr_instr& i : args.expr.instrs) work += i.fn >= ORR_FN_ADD ? 1 : 0;
  c.flops = work * static_cast<double>(out[0].elements());
  return c;
}

// How often an expression reads inputs that are sums.
int64_t reads_of_sums(const Op& op, const std::vector<Placement>& in) {
  return std::count_if(op.expr.instrs.begin(), op.expr.instrs.end(), [&](const orr_instr& i) {
    return i.fn == ORR_FN_INPUT && in[static_cast<size_t>(i.a)].kind == Placement::partial;
  });
}

// Sums of sums, and scalars scaled by what is known everywhere: a sum's square is none. One summand
// more makes no exchange more.
std::vector<Way> options(const OnParts& s, const Op& op, const std::vector<Placement>& in) {
  auto is_sum = [](const Placement& c) { return c.kind == Placement::partial; };
  const int64_t reads = reads_of_sums(op, in);
  if (reads == 0) return {};
  const bool all = std::all_of(in.begin(), in.end(), is_sum);
  Way way{in, std::vector<Placement>(op.out.size(), Placement::summand())};
  const orr_instr& last = op.expr.instrs.back();
  const bool scalar = s.from.type(op.out[0]).dims.empty();
  const bool constants = std::any_of(op.expr.instrs.begin(), op.expr.instrs.end(),
                                     [](const orr_instr& i) { return i.fn == ORR_FN_CONST; });
  const bool adds = last.fn == ORR_FN_ADD || last.fn == ORR_FN_SUB;
  if (adds && !constants && (all || scalar)) {
    way.in.assign(in.size(), Placement::summand());
    return {way};
  }
  if (last.fn != ORR_FN_MUL || !scalar || reads != 1 || last.a == last.b) return {};
  for (Placement& c : way.in)
    if (!is_sum(c)) c = Placement{};
  return {way};
}

constexpr PartsRule kParts{.options = options, .fit = fit_dims};

bool computes_in_eight_bits(const Expr& expr, const orr_instr& i) {
  const auto eight = [&](int32_t r) {
    return r >= 0 && is_eight_bits(expr.instrs[static_cast<size_t>(r)].dtype);
  };
  if (i.fn == ORR_FN_INPUT || i.fn == ORR_FN_CONST || i.fn == ORR_FN_CAST) return false;
  return is_eight_bits(i.dtype) || eight(i.a) || eight(i.b) || eight(i.c);
}

bool converts(const Expr& expr) {
  return std::none_of(expr.instrs.begin(), expr.instrs.end(),
                      [&](const orr_instr& i) { return computes_in_eight_bits(expr, i); });
}

}  // namespace

extern const OpDef pointwise_op =
    OpDef{"pointwise", infer, sharding, gradient, cost, form, &kParts}.with_eight_bits(converts);

}  // namespace orrery
