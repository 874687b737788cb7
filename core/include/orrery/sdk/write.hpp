// SPDX-License-Identifier: Apache-2.0
//
// Functions that add ops to a program and return values, for op plugins (sdk/op.hpp) and strategies
// (sdk/program.hpp).
#pragma once

#include <orrery/ops.h>
#include <orrery/strategy.h>

#include <algorithm>
#include <initializer_list>
#include <vector>

namespace orr {

// A value, or a number in its place.
struct Operand {
  Operand(int32_t value) : value(value) {}    // NOLINT: meant to convert
  Operand(double number) : number(number) {}  // NOLINT
  template <class V>
  requires requires(const V& v) { v.id; }
  Operand(const V& v) : value(v.id) {}  // NOLINT
  int32_t value = -1;
  double number = 0;
};

inline orr_attr int_attr(const char* name, int64_t value) {
  orr_attr a{};
  a.name = name, a.type = ORR_ATTR_INT, a.i = value;
  return a;
}
inline orr_attr real_attr(const char* name, double value) {
  orr_attr a{};
  a.name = name, a.type = ORR_ATTR_REAL, a.f = value;
  return a;
}
inline orr_attr text_attr(const char* name, const char* value) {
  orr_attr a{};
  a.name = name, a.type = ORR_ATTR_TEXT, a.text = value;
  return a;
}
inline orr_attr ints_attr(const char* name, const std::vector<int64_t>& values) {
  orr_attr a{};
  a.name = name, a.type = ORR_ATTR_INTS, a.ints = values.data();
  a.count = static_cast<int32_t>(values.size());
  return a;
}

inline orr_instr instr(int32_t fn, int32_t dtype, int32_t a = -1, int32_t b = -1, int32_t c = -1) {
  orr_instr i{};
  i.fn = fn, i.dtype = dtype, i.a = a, i.b = b, i.c = c;
  return i;
}

// A base class with such functions. Self must have op(kind, in, attrs, expr), which adds an op and
// returns its first output, a V, and type(value).
template <class Self, class V>
class Ops {
 public:
  // Adds a function of ops.h. All operands have one dtype, which the result has too unless it is
  // BOOL; the first operand of SELECT is BOOL. Shapes are broadcast from the right. REQUIRES: one
  // operand is a value.
  V pointwise(int32_t fn, std::initializer_list<Operand> operands) const {
    const bool logic = fn >= ORR_FN_AND && fn <= ORR_FN_NOT, select = fn == ORR_FN_SELECT;
    const bool truth = logic || fn == ORR_FN_ISFINITE || (fn >= ORR_FN_EQ && fn <= ORR_FN_GE);
    int32_t dtype = 0;
    for (const Operand* o = operands.begin() + (select ? 1 : 0); o != operands.end(); ++o)
      if (o->value >= 0) dtype = self().type(o->value).dtype;
    std::vector<int32_t> in;
    std::vector<orr_instr> instrs;
    for (const Operand& o : operands) {
      const bool first = &o == operands.begin();
      orr_instr i = instr(o.value < 0 ? ORR_FN_CONST : ORR_FN_INPUT,
                          select && first ? int32_t{ORR_BOOL} : dtype);
      i.imm = o.number;
      if (o.value >= 0) i.a = place_of(in, o.value);
      instrs.push_back(i);
    }
    const auto n = static_cast<int32_t>(instrs.size());
    instrs.push_back(
        instr(fn, truth ? int32_t{ORR_BOOL} : dtype, 0, n > 1 ? 1 : -1, n > 2 ? 2 : -1));
    return expression(in, instrs);
  }
  V add(Operand a, Operand b) const { return pointwise(ORR_FN_ADD, {a, b}); }
  V sub(Operand a, Operand b) const { return pointwise(ORR_FN_SUB, {a, b}); }
  V mul(Operand a, Operand b) const { return pointwise(ORR_FN_MUL, {a, b}); }
  V div(Operand a, Operand b) const { return pointwise(ORR_FN_DIV, {a, b}); }

  // A copy of x, with memory of its own.
  V same(int32_t x) const {
    return expression({x}, {instr(ORR_FN_INPUT, self().type(x).dtype, 0)});
  }
  V cast(int32_t x, int32_t dtype) const {
    return expression({x},
                      {instr(ORR_FN_INPUT, self().type(x).dtype, 0), instr(ORR_FN_CAST, dtype, 0)});
  }
  V constant(double value, int32_t dtype, const std::vector<int64_t>& dims = {}) const {
    orr_instr i = instr(ORR_FN_CONST, dtype);
    i.imm = value;
    return expression({}, {i}, {ints_attr("dims", dims)});
  }

  std::vector<int64_t> dims(int32_t value) const {
    const orr_tensor t = self().type(value);
    return {t.dims, t.dims + t.rank};
  }
  V reshape(int32_t x, const std::vector<int64_t>& dims) const {
    return self().op("reshape", {x}, {ints_attr("dims", dims)});
  }
  // The sum over the last dim, which is kept with extent 1.
  V sum_of_rows(int32_t x) const {
    std::vector<int64_t> shape = dims(x);
    const auto rank = static_cast<int64_t>(shape.size());
    shape.back() = 1;
    const V sum =
        self().op("reduce", {x},
                  {text_attr("fn", "sum"), int_attr("begin", rank - 1), int_attr("end", rank)});
    return reshape(sum, shape);
  }

 private:
  const Self& self() const { return static_cast<const Self&>(*this); }

  static int32_t place_of(std::vector<int32_t>& in, int32_t value) {
    auto at = std::find(in.begin(), in.end(), value);
    if (at == in.end()) at = in.insert(at, value);
    return static_cast<int32_t>(at - in.begin());
  }

  // Adds a pointwise op whose result is the last instruction.
  V expression(const std::vector<int32_t>& in, const std::vector<orr_instr>& instrs,
               const std::vector<orr_attr>& attrs = {}) const {
    const auto last = static_cast<int32_t>(instrs.size()) - 1;
    orr_expr expr{};
    expr.size = sizeof expr, expr.n_instrs = last + 1, expr.n_outputs = 1;
    expr.instrs = instrs.data(), expr.outputs = &last;
    return self().op("pointwise", in, attrs, &expr);
  }
};

}  // namespace orr
