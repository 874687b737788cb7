// SPDX-License-Identifier: Apache-2.0
//
// Pointwise functions and operators of tensors: one row each, one body for all of an arity.
#include "lua/api.h"
#include "lua/objects.h"

namespace orrery::lua {
namespace {

template <int32_t Fn>
int unary(lua_State* L) {
  push_tensor(L, program_here(L).pointwise(Fn, {Operand(value_at(L, 1))}));
  return 1;
}

template <int32_t Fn>
int binary(lua_State* L) {
  Program& program = program_here(L);
  push_tensor(L, program.pointwise(Fn, {operand_at(L, 1), operand_at(L, 2)}));
  return 1;
}

int silu(lua_State* L) {
  Program& program = program_here(L);
  const ValueId x = value_at(L, 1);
  const ValueId gate = program.pointwise(ORR_FN_SIGMOID, {Operand(x)});
  push_tensor(L, program.pointwise(ORR_FN_MUL, {Operand(x), Operand(gate)}));
  return 1;
}

int relu(lua_State* L) {
  Program& program = program_here(L);
  push_tensor(L, program.pointwise(ORR_FN_MAX, {Operand(value_at(L, 1)), Operand::number(0)}));
  return 1;
}

int select(lua_State* L) {
  Program& program = program_here(L);
  push_tensor(L, program.pointwise(ORR_FN_SELECT,
                                   {Operand(value_at(L, 1)), operand_at(L, 2), operand_at(L, 3)}));
  return 1;
}

int cast(lua_State* L) {
  Program& program = program_here(L);
  push_tensor(L, program.cast(value_at(L, 1), to_dtype(L, 2)));
  return 1;
}

int no_order(lua_State*) {
  fail(ORR_INVALID, "Lua turns the result of < and > into true or false; write a:lt(b), a:gt(b)");
}

int no_equality(lua_State*) {
  fail(ORR_INVALID, "Lua turns the result of == into true or false; write a:eq(b)");
}

int no_length(lua_State*) { fail(ORR_INVALID, "a tensor has no length; write #x.shape"); }

int show(lua_State* L) {
  const auto& tensor = check<Tensor>(L, 1);
  const Trace* trace = Trace::current();
  push_text(L, trace && trace->serial() == tensor.trace
                   ? "Tensor " + to_string(trace->program().type(tensor.id))
                   : "Tensor of an earlier trace");
  return 1;
}

Api one(const char* name, const char* doc, int (*body)(lua_State*)) {
  return {"Tensor", name, "orrery.Tensor", doc, body, {{"self", "tensor"}}, {}};
}

Api two(const char* name, const char* doc, int (*body)(lua_State*)) {
  return {"Tensor", name, "orrery.Tensor", doc, body, {{"self", "tensor"}, {"other", "operand"}},
          {}};
}

Api operation(const char* name, const char* doc, int (*body)(lua_State*)) {
  return {"Tensor", name, "orrery.Tensor", doc, body, {{"a", "operand"}, {"b", "operand"}}, {}};
}

// Lua hands over any two values, one of which is a tensor.
Api refusal(const char* name, int (*body)(lua_State*)) {
  return {"Tensor", name,
          "",       "Refused, with the method to write instead.",
          body,     {{"a", "any"}, {"b", "any", "nil"}},
          {}};
}

}  // namespace

std::vector<Api> math_api() {
  return {
      operation("__add", "Sum, with broadcasting.", binary<ORR_FN_ADD>),
      operation("__sub", "Difference, with broadcasting.", binary<ORR_FN_SUB>),
      operation("__mul", "Elementwise product, with broadcasting.", binary<ORR_FN_MUL>),
      operation("__div", "Quotient, with broadcasting.", binary<ORR_FN_DIV>),
      operation("__mod", "a - floor(a/b)*b.", binary<ORR_FN_MOD>),
      operation("__pow", "Power, with broadcasting.", binary<ORR_FN_POW>),
      {"Tensor",
       "__unm",
       "orrery.Tensor",
       "Negation.",
       unary<ORR_FN_NEG>,
       {{"a", "tensor"}, {"b", "any", "nil"}},
       {}},
      refusal("__lt", no_order),
      refusal("__le", no_order),
      refusal("__eq", no_equality),
      refusal("__len", no_length),
      {"Tensor",
       "__tostring",
       "string",
       "dtype and shape.",
       show,
       {{"a", "any"}, {"b", "any", "nil"}},
       {}},
      one("exp", "e to the power of each element.", unary<ORR_FN_EXP>),
      one("log", "Natural logarithm.", unary<ORR_FN_LOG>),
      one("tanh", "Hyperbolic tangent.", unary<ORR_FN_TANH>),
      one("sigmoid", "1 / (1 + exp(-x)).", unary<ORR_FN_SIGMOID>),
      one("relu", "max(x, 0).", relu),
      one("gelu", "GELU in its tanh form.", unary<ORR_FN_GELU>),
      one("silu", "x * sigmoid(x).", silu),
      one("sqrt", "Square root.", unary<ORR_FN_SQRT>),
      one("rsqrt", "1 / sqrt(x).", unary<ORR_FN_RSQRT>),
      one("recip", "1 / x.", unary<ORR_FN_RECIP>),
      one("abs", "Absolute value.", unary<ORR_FN_ABS>),
      one("sign", "-1, 0 or 1.", unary<ORR_FN_SIGN>),
      one("erf", "The error function.", unary<ORR_FN_ERF>),
      one("sin", "Sine.", unary<ORR_FN_SIN>),
      one("cos", "Cosine.", unary<ORR_FN_COS>),
      one("floor", "Largest integer not above.", unary<ORR_FN_FLOOR>),
      one("ceil", "Smallest integer not below.", unary<ORR_FN_CEIL>),
      one("round", "Nearest integer, ties to even.", unary<ORR_FN_ROUND>),
      one("isfinite", "true where neither infinite nor NaN.", unary<ORR_FN_ISFINITE>),
      one("logical_not", "Negation of booleans.", unary<ORR_FN_NOT>),
      two("pow", "Power, with broadcasting.", binary<ORR_FN_POW>),
      two("maximum", "The larger of two, elementwise.", binary<ORR_FN_MAX>),
      two("minimum", "The smaller of two, elementwise.", binary<ORR_FN_MIN>),
      two("gt", "x > other, as booleans.", binary<ORR_FN_GT>),
      two("lt", "x < other, as booleans.", binary<ORR_FN_LT>),
      two("ge", "x >= other, as booleans.", binary<ORR_FN_GE>),
      two("le", "x <= other, as booleans.", binary<ORR_FN_LE>),
      two("eq", "x == other, as booleans.", binary<ORR_FN_EQ>),
      two("ne", "x ~= other, as booleans.", binary<ORR_FN_NE>),
      two("logical_and", "Both true.", binary<ORR_FN_AND>),
      two("logical_or", "One or both true.", binary<ORR_FN_OR>),
      {"Tensor",
       "select",
       "orrery.Tensor",
       "Elementwise choice by this boolean tensor.",
       select,
       {{"self", "tensor"}, {"yes", "operand"}, {"no", "operand"}},
       {}},
      {"orrery",
       "where",
       "orrery.Tensor",
       "Elementwise choice: condition ? yes : no.",
       select,
       {{"condition", "tensor"}, {"yes", "operand"}, {"no", "operand"}},
       {}},
      {"Tensor",
       "cast",
       "orrery.Tensor",
       "The same numbers in another dtype.",
       cast,
       {{"self", "tensor"}, {"dtype", "dtype"}},
       {}},
  };
}

}  // namespace orrery::lua
