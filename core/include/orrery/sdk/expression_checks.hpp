// SPDX-License-Identifier: Apache-2.0
//
// For authors of kernel plugins: which pointwise expressions are well formed. Operands come before
// use and have fitting dtypes.
#pragma once

#include <orrery/sdk/op_checks.hpp>

namespace orr {

// Operands of a function that are registers, or -1 for an unknown function.
inline int arity(int32_t fn) {
  switch (fn) {
    case ORR_FN_INPUT:
    case ORR_FN_CONST: return 0;
    case ORR_FN_CAST:
    case ORR_FN_NOT:
    case ORR_FN_ISFINITE: return 1;
    case ORR_FN_AND:
    case ORR_FN_OR: return 2;
    case ORR_FN_RAND:
    case ORR_FN_FMA:
    case ORR_FN_SELECT: return 3;
    default: break;
  }
  if (fn >= ORR_FN_ADD && fn <= ORR_FN_MOD) return 2;
  if (fn >= ORR_FN_NEG && fn <= ORR_FN_GELU_GRAD) return 1;
  if (fn >= ORR_FN_EQ && fn <= ORR_FN_GE) return 2;
  return -1;
}

inline bool is_comparison(int32_t fn) { return fn >= ORR_FN_EQ && fn <= ORR_FN_GE; }
inline bool is_logic(int32_t fn) { return fn >= ORR_FN_AND && fn <= ORR_FN_NOT; }

// Functions that exist for reals only.
inline bool needs_real(int32_t fn) {
  return fn == ORR_FN_RAND || (fn >= ORR_FN_SQRT && fn <= ORR_FN_GELU_GRAD);
}

inline void check_instruction(const orr_op& op, int k) {
  const orr_instr& e = op.expr->instrs[k];
  const int32_t operand[3] = {e.a, e.b, e.c};
  std::string at = "instruction " + std::to_string(k);
  int n = arity(e.fn);
  require(n >= 0, at + " has unknown function " + std::to_string(e.fn));
  require(orr_dtype_bytes(e.dtype) > 0, at + " has unknown dtype");
  for (int i = 0; i < n; ++i)
    require(operand[i] >= 0 && operand[i] < k,
            at + " uses a register that is not computed before it");
  auto dtype = [&](int i) { return op.expr->instrs[operand[i]].dtype; };
  if (e.fn == ORR_FN_INPUT)
    return require(e.a >= 0 && e.a < op.n_in && op.in[e.a].dtype == e.dtype,
                   at + " reads an input that is missing or of another dtype");
  if (e.fn == ORR_FN_CONST || e.fn == ORR_FN_CAST) return;
  require(!is_eight_bits(e.dtype) && !is_eight_bits(dtype(0)),
          at + " computes in eight bits: these are only converted");
  if (is_comparison(e.fn) || is_logic(e.fn) || e.fn == ORR_FN_ISFINITE)
    require(e.dtype == ORR_BOOL, at + " must give bool");
  else
    require(
        e.dtype != ORR_BOOL || e.fn == ORR_FN_SELECT || e.fn == ORR_FN_MIN || e.fn == ORR_FN_MAX,
        at + " is arithmetic on bool");
  require(!needs_real(e.fn) || is_real(e.dtype), at + " needs a real dtype");
  if (e.fn == ORR_FN_ISFINITE) return require(is_real(dtype(0)), at + " needs a real operand");
  for (int i = 0; i < n; ++i) {
    int32_t wanted = e.dtype;
    if (e.fn == ORR_FN_RAND) wanted = ORR_I64;
    if (is_logic(e.fn) || (e.fn == ORR_FN_SELECT && i == 0)) wanted = ORR_BOOL;
    if (is_comparison(e.fn)) wanted = dtype(0);
    require(dtype(i) == wanted, at + " has an operand of another dtype");
  }
}

// Throws Unsupported unless the op's expression is as in ops.h.
inline void check_expression(const orr_op& op) {
  require(op.expr != nullptr, "a pointwise op needs an expression");
  require(op.expr->n_outputs == op.n_out,
          "the expression has another number of outputs than the op");
  for (int k = 0; k < op.expr->n_instrs; ++k) check_instruction(op, k);
  for (int j = 0; j < op.n_out; ++j) {
    int32_t r = op.expr->outputs[j];
    require(r >= 0 && r < op.expr->n_instrs && op.expr->instrs[r].dtype == op.out[j].dtype,
            "output " + std::to_string(j) + " is no register of its dtype");
  }
}

}  // namespace orr
