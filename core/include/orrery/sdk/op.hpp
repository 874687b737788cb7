// SPDX-License-Identifier: Apache-2.0
//
// What every plugin of ops in C++ would write again: ops appended by functions that return values,
// an op's table by the names of its functions, and the entry.
#pragma once

#include <orrery/op.h>
#include <orrery/ops.h>

#include <initializer_list>
#include <orrery/sdk/plugin.hpp>
#include <vector>

namespace orr {

// A value, or a number that stands where one is expected.
struct Operand {
  Operand(int32_t value) : value(value) {}    // NOLINT: meant to convert
  Operand(double number) : number(number) {}  // NOLINT
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

// Throws Error where the host refuses an op. Lives as long as the call.
class Writer {
 public:
  Writer(orr_program* program, const orr_writer* writer) : program_(program), writer_(writer) {}

  // The first output.
  int32_t op(const char* kind, const std::vector<int32_t>& in,
             const std::vector<orr_attr>& attrs = {}, const orr_expr* expr = nullptr) const {
    orr_op_desc desc{};
    desc.size = sizeof desc, desc.kind = kind;
    desc.n_in = static_cast<int32_t>(in.size()), desc.in = in.data();
    desc.n_attrs = static_cast<int32_t>(attrs.size()), desc.attrs = attrs.data();
    desc.expr = expr;
    int32_t out = -1, n = 0;
    check(writer_->op(program_, &desc, &out, 1, &n));
    return out;
  }

  orr_tensor type(int32_t value) const {
    orr_tensor t{};
    check(writer_->type(program_, value, &t));
    return t;
  }
  std::vector<int64_t> dims(int32_t value) const {
    const orr_tensor t = type(value);
    return {t.dims, t.dims + t.rank};
  }

  // A function of ops.h of operands of one dtype, the result's; shapes are broadcast from the
  // right. REQUIRES: one operand is a value, and the function is no comparison.
  int32_t pointwise(int32_t fn, std::initializer_list<Operand> operands) const {
    std::vector<int32_t> in;
    std::vector<orr_instr> instrs;
    int32_t dtype = 0;
    for (const Operand& o : operands)
      if (o.value >= 0) dtype = type(o.value).dtype;
    for (const Operand& o : operands) {
      orr_instr i{};
      i.fn = o.value < 0 ? ORR_FN_CONST : ORR_FN_INPUT;
      i.dtype = dtype, i.a = static_cast<int32_t>(in.size()), i.b = i.c = -1, i.imm = o.number;
      if (o.value >= 0) in.push_back(o.value);
      instrs.push_back(i);
    }
    const auto last = static_cast<int32_t>(instrs.size());
    orr_instr call{};
    call.fn = fn, call.dtype = dtype, call.a = 0;
    call.b = last > 1 ? 1 : -1, call.c = last > 2 ? 2 : -1;
    instrs.push_back(call);
    orr_expr expr{};
    expr.size = sizeof expr, expr.n_instrs = last + 1, expr.n_outputs = 1;
    expr.instrs = instrs.data(), expr.outputs = &last;
    return op("pointwise", in, {}, &expr);
  }
  int32_t add(Operand a, Operand b) const { return pointwise(ORR_FN_ADD, {a, b}); }
  int32_t sub(Operand a, Operand b) const { return pointwise(ORR_FN_SUB, {a, b}); }
  int32_t mul(Operand a, Operand b) const { return pointwise(ORR_FN_MUL, {a, b}); }
  int32_t div(Operand a, Operand b) const { return pointwise(ORR_FN_DIV, {a, b}); }

  int32_t reshape(int32_t x, const std::vector<int64_t>& dims) const {
    return op("reshape", {x}, {ints_attr("dims", dims)});
  }
  // The sum over the last dim, which stays with extent 1.
  int32_t sum_of_rows(int32_t x) const {
    std::vector<int64_t> shape = dims(x);
    const auto rank = static_cast<int64_t>(shape.size());
    shape.back() = 1;
    return reshape(op("reduce", {x},
                      {text_attr("fn", "sum"), int_attr("begin", rank - 1), int_attr("end", rank)}),
                   shape);
  }

 private:
  orr_program* program_;
  const orr_writer* writer_;
};

// The entry of a plugin whose ops are in one table.
template <const orr_op_api& table>
orr_status* op_entry(const orr_bootstrap* boot, orr_exports* out) {
  attach(boot);
  out->get = [](void*, const char* id, uint32_t version) -> const void* {
    return std::string_view(id) == "op" && version == 1 ? &table : nullptr;
  };
  return nullptr;
}

}  // namespace orr
