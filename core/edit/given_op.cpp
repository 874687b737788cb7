// SPDX-License-Identifier: Apache-2.0
//
// Ops as plugins describe them. No number or pointer in a description is believed.
#include <algorithm>

#include "base/error.h"
#include "edit/calls.h"
#include "edit/edit_table.h"
#include "edit/plugin_ops.h"
#include "program/build_comm.h"
#include "program/op.h"

namespace orrery::edit {

void check_value(const orr_program* e, int32_t v) {
  if (v < 0 || static_cast<size_t>(v) >= e->program->values().size())
    fail(ORR_INVALID, "there is no value {}", v);
}

void check_list(const std::string& whose, const char* what, int32_t n, const void* list) {
  if (n < 0) fail(ORR_INVALID, "{}: it has {} {}", whose, n, what);
  if (n > 0 && !list) fail(ORR_INVALID, "{}: it has {} {}, but their list is NULL", whose, n, what);
}

Attr attr_of(const orr_attr& a) {
  switch (a.type) {
    case ORR_ATTR_INT: return a.i;
    case ORR_ATTR_REAL: return a.f;
    case ORR_ATTR_TEXT:
      if (!a.text) fail(ORR_INVALID, "attribute '{}' is a text, but its `text` is NULL", a.name);
      return std::string(a.text);
    case ORR_ATTR_INTS:
      check_list(a.name, "integers", a.count, a.ints);
      return Dims(a.ints, a.ints + a.count);
    default: fail(ORR_INVALID, "attribute '{}' has the unknown type {}", a.name, a.type);
  }
}

namespace {

// Instruction `number` of a pointwise op of `n_in` inputs.
void check_instr(const orr_instr& instr, int32_t number, int32_t n_in) {
  const ScalarFn& fn = scalar_fn(instr.fn);
  if (orr_dtype_bytes(instr.dtype) == 0)
    fail(ORR_INVALID, "pointwise: instruction {} ({}) has the unknown dtype {}", number, fn.name,
         instr.dtype);
  if (instr.fn == ORR_FN_INPUT && (instr.a < 0 || instr.a >= n_in))
    fail(ORR_INVALID, "pointwise: instruction {} reads input {} of {}", number, instr.a, n_in);
  const int32_t operands[] = {instr.a, instr.b, instr.c};
  for (int i = 0; i < fn.arity; ++i)
    if (operands[i] < 0 || operands[i] >= number)
      fail(ORR_INVALID, "pointwise: instruction {} ({}) reads register {}, which is no earlier one",
           number, fn.name, operands[i]);
}

Expr expr_of(const orr_expr& given, int32_t n_in) {
  check_list("pointwise", "instructions", given.n_instrs, given.instrs);
  check_list("pointwise", "outputs", given.n_outputs, given.outputs);
  for (int32_t i = 0; i < given.n_instrs; ++i) check_instr(given.instrs[i], i, n_in);
  if (given.n_instrs == 0 || given.n_outputs == 0)
    fail(ORR_INVALID, "pointwise: it has no instruction or no output");
  for (int32_t i = 0; i < given.n_outputs; ++i)
    if (given.outputs[i] < 0 || given.outputs[i] >= given.n_instrs)
      fail(ORR_INVALID, "pointwise: output {} is register {} of {}", i, given.outputs[i],
           given.n_instrs);
  return {{given.instrs, given.instrs + given.n_instrs},
          {given.outputs, given.outputs + given.n_outputs}};
}

}  // namespace

Op op_of(orr_program* e, const orr_op_desc& desc) {
  Op op;
  if (!desc.kind) fail(ORR_INVALID, "an op has no kind: its `kind` is NULL");
  op.kind = desc.kind, op.phase = e->program->phase(), op.site = e->program->site();
  const bool plugin = find_plugin_op(op.kind);
  if (!plugin) op_def(op.kind);
  check_list(op.kind, "inputs", desc.n_in, desc.in);
  check_list(op.kind, "attributes", desc.n_attrs, desc.attrs);
  for (int32_t i = 0; i < desc.n_in; ++i) {
    check_value(e, desc.in[i]);
    op.in.push_back(desc.in[i]);
  }
  for (int32_t i = 0; i < desc.n_attrs; ++i) {
    const orr_attr& attr = desc.attrs[i];
    if (!attr.name) fail(ORR_INVALID, "{}: attribute {} has no name", op.kind, i);
    op.attrs.set(attr.name, attr_of(attr));
  }
  if (!plugin && is_exchange(op.kind)) {
    op.attrs.set("origin", e->strategy);
    e->program->axis_size(attr_text(op.attrs, "axis", ""));
  }
  if (desc.expr) op.expr = expr_of(*desc.expr, desc.n_in);
  return op;
}

}  // namespace orrery::edit
