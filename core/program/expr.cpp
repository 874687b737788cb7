// SPDX-License-Identifier: Apache-2.0
#include "program/expr.h"

#include <array>

#include "base/error.h"
#include "program/types.h"

namespace orrery {
namespace {

constexpr std::array kFunctions = {
    ScalarFn{ORR_FN_INPUT, "input", 0, false, true},
    ScalarFn{ORR_FN_CONST, "const", 0, false, false},
    ScalarFn{ORR_FN_CAST, "cast", 1, false, true},
    ScalarFn{ORR_FN_RAND, "rand", 3, false, false},
    ScalarFn{ORR_FN_ADD, "add", 2, false, true},
    ScalarFn{ORR_FN_SUB, "sub", 2, false, true},
    ScalarFn{ORR_FN_MUL, "mul", 2, false, false},
    ScalarFn{ORR_FN_DIV, "div", 2, false, false},
    ScalarFn{ORR_FN_MIN, "minimum", 2, false, false},
    ScalarFn{ORR_FN_MAX, "maximum", 2, false, false},
    ScalarFn{ORR_FN_POW, "pow", 2, false, false},
    ScalarFn{ORR_FN_FMA, "fma", 3, false, false},
    ScalarFn{ORR_FN_MOD, "mod", 2, false, false},
    ScalarFn{ORR_FN_NEG, "neg", 1, false, true},
    ScalarFn{ORR_FN_ABS, "abs", 1, false, false},
    ScalarFn{ORR_FN_SIGN, "sign", 1, false, false},
    ScalarFn{ORR_FN_SQRT, "sqrt", 1, false, false},
    ScalarFn{ORR_FN_RSQRT, "rsqrt", 1, false, false},
    ScalarFn{ORR_FN_RECIP, "reciprocal", 1, false, false},
    ScalarFn{ORR_FN_EXP, "exp", 1, false, false},
    ScalarFn{ORR_FN_LOG, "log", 1, false, false},
    ScalarFn{ORR_FN_TANH, "tanh", 1, false, false},
    ScalarFn{ORR_FN_SIGMOID, "sigmoid", 1, false, false},
    ScalarFn{ORR_FN_ERF, "erf", 1, false, false},
    ScalarFn{ORR_FN_SIN, "sin", 1, false, false},
    ScalarFn{ORR_FN_COS, "cos", 1, false, false},
    ScalarFn{ORR_FN_FLOOR, "floor", 1, false, false},
    ScalarFn{ORR_FN_CEIL, "ceil", 1, false, false},
    ScalarFn{ORR_FN_ROUND, "round", 1, false, false},
    ScalarFn{ORR_FN_GELU, "gelu", 1, false, false},
    ScalarFn{ORR_FN_GELU_GRAD, "gelu_grad", 1, false, false},
    ScalarFn{ORR_FN_EQ, "eq", 2, true, false},
    ScalarFn{ORR_FN_NE, "ne", 2, true, false},
    ScalarFn{ORR_FN_LT, "lt", 2, true, false},
    ScalarFn{ORR_FN_LE, "le", 2, true, false},
    ScalarFn{ORR_FN_GT, "gt", 2, true, false},
    ScalarFn{ORR_FN_GE, "ge", 2, true, false},
    ScalarFn{ORR_FN_AND, "logical_and", 2, true, false},
    ScalarFn{ORR_FN_OR, "logical_or", 2, true, false},
    ScalarFn{ORR_FN_NOT, "logical_not", 1, true, false},
    ScalarFn{ORR_FN_ISFINITE, "isfinite", 1, true, false},
    ScalarFn{ORR_FN_SELECT, "where", 3, false, false},
};

}  // namespace

int32_t Expr::push(int32_t fn, int32_t dtype, int32_t a, int32_t b, int32_t c, double imm) {
  instrs.push_back({fn, dtype, a, b, c, 0, imm});
  return static_cast<int32_t>(instrs.size()) - 1;
}

const ScalarFn& scalar_fn(int32_t fn) {
  for (const ScalarFn& row : kFunctions)
    if (row.fn == fn) return row;
  fail(ORR_INVALID, "unknown scalar function {}", fn);
}

std::string to_string(const Expr& expr) {
  std::string text;
  for (size_t i = 0; i < expr.instrs.size(); ++i) {
    const orr_instr& in = expr.instrs[i];
    text += fmt::format("{}r{}=", i ? " " : "", i);
    switch (in.fn) {
      case ORR_FN_INPUT: text += fmt::format("in{}", in.a); break;
      case ORR_FN_CONST: text += fmt::format("{}", in.imm); break;
      case ORR_FN_RAND: text += fmt::format("rand{{{}}}", in.imm); break;
      case ORR_FN_CAST: text += fmt::format("{}(r{})", dtype_name(in.dtype), in.a); break;
      default: {
        const ScalarFn& f = scalar_fn(in.fn);
        text += fmt::format("{}(r{}", f.name, in.a);
        if (f.arity > 1) text += fmt::format(",r{}", in.b);
        if (f.arity > 2) text += fmt::format(",r{}", in.c);
        text += ")";
      }
    }
  }
  text += " ->";
  for (int32_t o : expr.outputs) text += fmt::format(" r{}", o);
  return text;
}

}  // namespace orrery
