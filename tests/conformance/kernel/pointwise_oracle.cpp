// SPDX-License-Identifier: Apache-2.0
#include "conformance/kernel/pointwise_oracle.h"

#include <cmath>

namespace kernel_suite {
namespace {

double gelu(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

double binary(int32_t fn, double a, double b, bool real) {
  switch (fn) {
    case ORR_FN_ADD: return a + b;
    case ORR_FN_SUB: return a - b;
    case ORR_FN_MUL: return a * b;
    case ORR_FN_DIV: return real ? a / b : std::trunc(a / b);
    case ORR_FN_MIN: return std::fmin(a, b);
    case ORR_FN_MAX: return std::fmax(a, b);
    case ORR_FN_POW: return std::pow(a, b);
    case ORR_FN_MOD: return a - std::floor(a / b) * b;
    case ORR_FN_EQ: return a == b;
    case ORR_FN_NE: return a != b;
    case ORR_FN_LT: return a < b;
    case ORR_FN_LE: return a <= b;
    case ORR_FN_GT: return a > b;
    case ORR_FN_GE: return a >= b;
    case ORR_FN_AND: return a != 0 && b != 0;
    case ORR_FN_OR: return a != 0 || b != 0;
    default: return NAN;
  }
}

double unary(int32_t fn, double x) {
  const double step = 1e-5;
  switch (fn) {
    case ORR_FN_NEG: return -x;
    case ORR_FN_ABS: return std::fabs(x);
    case ORR_FN_SIGN: return (x > 0) - (x < 0);
    case ORR_FN_SQRT: return std::sqrt(x);
    case ORR_FN_RSQRT: return 1 / std::sqrt(x);
    case ORR_FN_RECIP: return 1 / x;
    case ORR_FN_EXP: return std::exp(x);
    case ORR_FN_LOG: return std::log(x);
    case ORR_FN_TANH: return std::tanh(x);
    case ORR_FN_SIGMOID: return 1 / (1 + std::exp(-x));
    case ORR_FN_ERF: return std::erf(x);
    case ORR_FN_SIN: return std::sin(x);
    case ORR_FN_COS: return std::cos(x);
    case ORR_FN_FLOOR: return std::floor(x);
    case ORR_FN_CEIL: return std::ceil(x);
    case ORR_FN_ROUND: return std::nearbyint(x);
    case ORR_FN_GELU: return gelu(x);
    case ORR_FN_GELU_GRAD:  // by differences of fourth order
      return (8 * (gelu(x + step) - gelu(x - step)) - gelu(x + 2 * step) + gelu(x - 2 * step)) /
             (12 * step);
    case ORR_FN_NOT: return x == 0;
    case ORR_FN_ISFINITE: return std::isfinite(x);
    default: return NAN;
  }
}

bool takes_one(int32_t fn) {
  return (fn >= ORR_FN_NEG && fn <= ORR_FN_GELU_GRAD) || fn == ORR_FN_NOT || fn == ORR_FN_ISFINITE;
}

// The element of input `t` at the output's row-major position.
size_t position(const orr_tensor& t, const orr_tensor& out, size_t at) {
  size_t index = 0, step = 1;
  for (int d = out.rank - 1; d >= 0; at /= size_t(out.dims[d--])) {
    if (t.dims[d] == out.dims[d]) index += at % size_t(out.dims[d]) * step;
    step *= size_t(t.dims[d]);
  }
  return index;
}

double element(const Case& c, const orr_instr& e, const std::vector<Values>& x, const Values& r,
               size_t at) {
  auto reg = [&](int32_t i) { return r[size_t(i)]; };
  switch (e.fn) {
    case ORR_FN_INPUT: return x[size_t(e.a)][position(c.in[size_t(e.a)], c.out[0], at)];
    case ORR_FN_CONST: return e.imm;
    case ORR_FN_CAST:
      if (e.dtype == ORR_BOOL) return reg(e.a) != 0;
      return is_real(e.dtype) ? reg(e.a) : std::trunc(reg(e.a));
    case ORR_FN_RAND:
      return orr_uniform(uint64_t(reg(e.a)), uint32_t(e.imm), uint32_t(reg(e.b)),
                         uint64_t(reg(e.c)) + at);
    case ORR_FN_FMA: return std::fma(reg(e.a), reg(e.b), reg(e.c));
    case ORR_FN_SELECT: return reg(e.a) != 0 ? reg(e.b) : reg(e.c);
    default: break;
  }
  return takes_one(e.fn) ? unary(e.fn, reg(e.a))
                         : binary(e.fn, reg(e.a), reg(e.b), is_real(e.dtype));
}

}  // namespace

std::vector<Values> pointwise_oracle(const Case& c, const std::vector<Values>& inputs) {
  std::vector<Values> outputs(c.out.size());
  for (size_t at = 0; at < size_t(elements(c.out[0])); ++at) {
    Values registers;
    for (const orr_instr& e : c.instrs)
      registers.push_back(rounded(e.dtype, element(c, e, inputs, registers, at)));
    for (size_t j = 0; j < outputs.size(); ++j)
      outputs[j].push_back(registers[size_t(c.stored[j])]);
  }
  return outputs;
}

}  // namespace kernel_suite
