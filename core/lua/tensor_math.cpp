// SPDX-License-Identifier: Apache-2.0
//
// Pointwise functions and operators of tensors: one row for each, and one body for each arity.
#include "lua/call.h"

namespace orrery::lua {
namespace {

template <int32_t Fn>
ValueId unary(Program& p, ValueId x) {
  return p.pointwise(Fn, {Operand(x)});
}

template <int32_t Fn>
ValueId binary(Program& p, const Operand& a, const Operand& b) {
  return p.pointwise(Fn, {a, b});
}

ValueId relu(Program& p, ValueId x) {
  return p.pointwise(ORR_FN_MAX, {Operand::number(0), Operand(x)});  // slope 0 at 0
}

ValueId select(Program& p, ValueId condition, const Operand& yes, const Operand& no) {
  return p.pointwise(ORR_FN_SELECT, {Operand(condition), yes, no});
}

ValueId cast(Program& p, ValueId x, Dtype dtype) { return p.cast(x, dtype); }

Dims shape(Program& p, ValueId x) { return p.type(x).dims; }
Dtype dtype(Program& p, ValueId x) { return {p.type(x).dtype}; }

int no_order(lua_State*) {
  fail(ORR_INVALID, "Lua turns the result of < and > into true or false; write a:lt(b), a:gt(b)");
}

int no_equality(lua_State*) {
  fail(ORR_INVALID, "Lua turns the result of == into true or false; write a:eq(b)");
}

int no_length(lua_State*) { fail(ORR_INVALID, "a tensor has no length; write #x.shape"); }

std::string show(Tensor& tensor) {
  const Trace* trace = Trace::current();
  return trace && trace->serial() == tensor.trace
             ? "Tensor " + to_string(trace->program().type(tensor.id))
             : "Tensor of an earlier trace";
}

template <int32_t Fn>
Api one(const std::string& name, const std::string& doc) {
  return {fmt::format("Tensor:{}() -> Tensor; {}", name, doc), call<unary<Fn>>};
}

template <int32_t Fn>
Api two(const std::string& name, const std::string& doc) {
  return {fmt::format("Tensor:{}(other: operand) -> Tensor; {}", name, doc), call<binary<Fn>>};
}

template <int32_t Fn>
Api operation(const std::string& name, const std::string& doc) {
  return {fmt::format("Tensor.{}(a: operand, b: operand) -> Tensor; {}", name, doc),
          call<binary<Fn>>};
}

// A row for an operator that tensors do not have; its body throws what to write instead.
Api refusal(const std::string& name, Body body) {
  return {
      fmt::format("Tensor.{}(a: any, b?: any); Refused, with the method to write instead.", name),
      body};
}

}  // namespace

std::vector<Api> math_api() {
  return {
      {"Tensor.shape: integer[]", call<shape>},
      {"Tensor.dtype: orrery.DType", call<dtype>},
      operation<ORR_FN_ADD>("__add", "Sum, with broadcasting."),
      operation<ORR_FN_SUB>("__sub", "Difference, with broadcasting."),
      operation<ORR_FN_MUL>("__mul", "Elementwise product, with broadcasting."),
      operation<ORR_FN_DIV>("__div", "Quotient, with broadcasting."),
      operation<ORR_FN_MOD>("__mod", "a - floor(a/b)*b."),
      operation<ORR_FN_POW>("__pow", "Power, with broadcasting."),
      {"Tensor.__unm(a: Tensor, b?: any) -> Tensor; Negation.", call<unary<ORR_FN_NEG>>},
      refusal("__lt", no_order),
      refusal("__le", no_order),
      refusal("__eq", no_equality),
      refusal("__len", no_length),
      {"Tensor.__tostring(a: any, b?: any) -> string; dtype and shape.", call<show>},
      one<ORR_FN_EXP>("exp", "e to the power of each element."),
      one<ORR_FN_LOG>("log", "Natural logarithm."),
      one<ORR_FN_TANH>("tanh", "Hyperbolic tangent."),
      one<ORR_FN_SIGMOID>("sigmoid", "1 / (1 + exp(-x))."),
      {"Tensor:relu() -> Tensor; max(x, 0).", call<relu>},
      one<ORR_FN_GELU>("gelu", "GELU in its tanh form."),
      one<ORR_FN_SQRT>("sqrt", "Square root."),
      one<ORR_FN_RSQRT>("rsqrt", "1 / sqrt(x)."),
      one<ORR_FN_RECIP>("recip", "1 / x."),
      one<ORR_FN_ABS>("abs", "Absolute value."),
      one<ORR_FN_SIGN>("sign", "-1, 0 or 1; NaN of NaN."),
      one<ORR_FN_ERF>("erf", "The error function."),
      one<ORR_FN_SIN>("sin", "Sine."),
      one<ORR_FN_COS>("cos", "Cosine."),
      one<ORR_FN_FLOOR>("floor", "Largest integer not above."),
      one<ORR_FN_CEIL>("ceil", "Smallest integer not below."),
      one<ORR_FN_ROUND>("round", "Nearest integer, ties to even."),
      one<ORR_FN_ISFINITE>("isfinite", "true where neither infinite nor NaN."),
      one<ORR_FN_NOT>("logical_not", "Negation of booleans."),
      two<ORR_FN_POW>("pow", "Power, with broadcasting; of integers in f32."),
      two<ORR_FN_MAX>("maximum",
                      "The larger of two, elementwise; NaN if one is. Of equal ones the first gets "
                      "the gradient."),
      two<ORR_FN_MIN>("minimum",
                      "The smaller of two, elementwise, with a gradient as that of maximum."),
      two<ORR_FN_GT>("gt", "x > other, as booleans."),
      two<ORR_FN_LT>("lt", "x < other, as booleans."),
      two<ORR_FN_GE>("ge", "x >= other, as booleans."),
      two<ORR_FN_LE>("le", "x <= other, as booleans."),
      two<ORR_FN_EQ>("eq", "x == other, as booleans."),
      two<ORR_FN_NE>("ne", "x ~= other, as booleans."),
      two<ORR_FN_AND>("logical_and", "Both true."),
      two<ORR_FN_OR>("logical_or", "One or both true."),
      {"Tensor:select(yes: operand, no: operand) -> Tensor; Elementwise choice by this boolean "
       "tensor.",
       call<select>},
      {"orrery.where(condition: Tensor, yes: operand, no: operand) -> Tensor; Elementwise choice: "
       "condition ? yes : no.",
       call<select>},
      {"Tensor:cast(dtype: dtype) -> Tensor; The same numbers in another dtype. Reals lose their "
       "fraction in integers; what i32 or i64 does not hold, and NaN, becomes the smallest one.",
       call<cast>},
  };
}

}  // namespace orrery::lua
