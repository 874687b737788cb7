// SPDX-License-Identifier: Apache-2.0
//
// An expression becomes a kernel with one variable for each register. Integers are computed in long
// and wrap when they are narrowed; f32 is computed in f32, with the device's own functions.
#include <bit>
#include <cstdio>

#include "kernel.h"
#include "pointwise.h"

namespace ocl {
namespace {

std::string reg(int32_t k) { return "r" + std::to_string(k); }
const char* register_type(int32_t dtype) { return is_real(dtype) ? c_type(dtype) : "long"; }

std::string constant(const orr_instr& e) {
  char text[64];
  if (e.dtype == ORR_F32)
    std::snprintf(text, sizeof text, "as_float(0x%xu)",
                  std::bit_cast<uint32_t>(static_cast<float>(e.imm)));
  else if (e.dtype == ORR_F64)
    std::snprintf(text, sizeof text, "as_double(0x%llxul)",
                  static_cast<unsigned long long>(std::bit_cast<uint64_t>(e.imm)));
  else if (e.dtype == ORR_BOOL)
    return e.imm != 0 ? "1" : "0";
  else if (e.imm >= -0x1p63 && e.imm < 0x1p63)
    std::snprintf(text, sizeof text, "(long)0x%llxul",
                  static_cast<unsigned long long>(static_cast<int64_t>(e.imm)));
  else
    return "LONG_MIN";
  return text;
}

std::string cast(const orr_expr& expr, const orr_instr& e) {
  const std::string a = reg(e.a);
  if (e.dtype == ORR_BOOL) return a + " != 0";
  const bool truncates = !is_real(e.dtype) && is_real(expr.instrs[e.a].dtype);
  if (truncates) return "to_long(" + a + (e.dtype == ORR_I32 ? ", 0x1p31)" : ", 0x1p63)");
  return std::string("(") + register_type(e.dtype) + ")" + a;
}

std::string random(const orr_instr& e) {
  return std::string("(") + register_type(e.dtype) + ")uniform_of((ulong)" + reg(e.a) + ", " +
         std::to_string(static_cast<uint32_t>(e.imm)) + "u, (uint)" + reg(e.b) + ", (ulong)" +
         reg(e.c) + " + (ulong)id)";
}

std::string comparison(const orr_instr& e) {
  static const char* const signs[] = {"==", "!=", "<", "<=", ">", ">="};
  return reg(e.a) + " " + signs[e.fn - ORR_FN_EQ] + " " + reg(e.b);
}

std::string integer(const orr_instr& e) {
  const std::string a = reg(e.a), b = reg(e.b), x = "(ulong)" + a, y = "(ulong)" + b;
  switch (e.fn) {
    case ORR_FN_ADD: return "(long)(" + x + " + " + y + ")";
    case ORR_FN_SUB: return "(long)(" + x + " - " + y + ")";
    case ORR_FN_MUL: return "(long)(" + x + " * " + y + ")";
    case ORR_FN_FMA: return "(long)(" + x + " * " + y + " + (ulong)" + reg(e.c) + ")";
    case ORR_FN_DIV: return "divide(" + a + ", " + b + ")";
    case ORR_FN_MOD: return "modulo(" + a + ", " + b + ")";
    case ORR_FN_MIN: return "min(" + a + ", " + b + ")";
    case ORR_FN_MAX: return "max(" + a + ", " + b + ")";
    case ORR_FN_NEG: return "(long)(0 - " + x + ")";
    case ORR_FN_ABS: return "(" + a + " < 0 ? (long)(0 - " + x + ") : " + a + ")";
    case ORR_FN_SIGN: return "(long)((" + a + " > 0) - (" + a + " < 0))";
    default: throw Refused("function " + std::to_string(e.fn) + " of integers is not here");
  }
}

std::string real(const orr_instr& e) {
  const std::string a = reg(e.a), b = reg(e.b);
  const std::string one = is_real(e.dtype) && e.dtype == ORR_F64 ? "1.0" : "1.0f";
  switch (e.fn) {
    case ORR_FN_ADD: return a + " + " + b;
    case ORR_FN_SUB: return a + " - " + b;
    case ORR_FN_MUL: return a + " * " + b;
    case ORR_FN_DIV: return a + " / " + b;
    case ORR_FN_MIN:
      return "(" + b + " < " + a + " || " + b + " != " + b + " ? " + b + " : " + a + ")";
    case ORR_FN_MAX:
      return "(" + b + " > " + a + " || " + b + " != " + b + " ? " + b + " : " + a + ")";
    case ORR_FN_POW: return "pow(" + a + ", " + b + ")";
    case ORR_FN_FMA: return "fma(" + a + ", " + b + ", " + reg(e.c) + ")";
    case ORR_FN_MOD: return a + " - floor(" + a + " / " + b + ") * " + b;
    case ORR_FN_NEG: return "-" + a;
    case ORR_FN_ABS: return "fabs(" + a + ")";
    case ORR_FN_SIGN:
      return "(" + a + " > 0 ? " + one + " : " + a + " < 0 ? -" + one + " : " + a + ")";
    case ORR_FN_SQRT: return "sqrt(" + a + ")";
    case ORR_FN_RSQRT: return one + " / sqrt(" + a + ")";
    case ORR_FN_RECIP: return one + " / " + a;
    case ORR_FN_EXP: return "exp(" + a + ")";
    case ORR_FN_LOG: return "log(" + a + ")";
    case ORR_FN_TANH: return "tanh(" + a + ")";
    case ORR_FN_SIGMOID: return one + " / (" + one + " + exp(-" + a + "))";
    case ORR_FN_ERF: return "erf(" + a + ")";
    case ORR_FN_SIN: return "sin(" + a + ")";
    case ORR_FN_COS: return "cos(" + a + ")";
    case ORR_FN_FLOOR: return "floor(" + a + ")";
    case ORR_FN_CEIL: return "ceil(" + a + ")";
    case ORR_FN_ROUND: return "rint(" + a + ")";
    case ORR_FN_GELU: return std::string("gelu_") + register_type(e.dtype) + "(" + a + ")";
    case ORR_FN_GELU_GRAD:
      return std::string("gelu_grad_") + register_type(e.dtype) + "(" + a + ")";
    default: throw Refused("function " + std::to_string(e.fn) + " is not here");
  }
}

std::string value(const orr_op& op, const orr_instr& e) {
  const std::string a = reg(e.a), b = reg(e.b);
  switch (e.fn) {
    case ORR_FN_INPUT: return "t" + std::to_string(e.a) + "[at[" + std::to_string(e.a) + "]]";
    case ORR_FN_CONST: return constant(e);
    case ORR_FN_CAST: return cast(*op.expr, e);
    case ORR_FN_RAND: return random(e);
    case ORR_FN_AND: return a + " & " + b;
    case ORR_FN_OR: return a + " | " + b;
    case ORR_FN_NOT: return "!" + a;
    case ORR_FN_ISFINITE: return "isfinite(" + a + ")";
    case ORR_FN_SELECT: return "(" + a + " ? " + b + " : " + reg(e.c) + ")";
    default: break;
  }
  if (e.fn >= ORR_FN_EQ && e.fn <= ORR_FN_GE) return comparison(e);
  return is_real(e.dtype) ? real(e) : integer(e);
}

std::string narrowed(int32_t dtype, const std::string& text) {
  if (dtype == ORR_I32) return "(int)(" + text + ")";
  return dtype == ORR_U8 ? "(uchar)(" + text + ")" : text;
}

}  // namespace

std::string source_of(const orr_op& op) {
  std::string parameters, pointers, body;
  for (int i = 0; i < op.n_in + op.n_out; ++i) {
    const std::string t = "t" + std::to_string(i);
    parameters += "IN(" + t + "), ";
    pointers += std::string("  OF(") + c_type(tensor(op, i).dtype) + ", " + t + ");\n";
  }
  for (int k = 0; k < op.expr->n_instrs; ++k) {
    const orr_instr& e = op.expr->instrs[k];
    body += std::string("  const ") + register_type(e.dtype) + " " + reg(k) + " = " +
            narrowed(e.dtype, value(op, e)) + ";\n";
  }
  for (int j = 0; j < op.expr->n_outputs; ++j) {
    const std::string i = std::to_string(op.n_in + j);
    body += "  t" + i + "[at[" + i + "]] = (" + c_type(op.out[j].dtype) + ")" +
            reg(op.expr->outputs[j]) + ";\n";
  }
  return "kernel void pointwise(" + parameters +
         "constant long* layout, long rank, long items) {\n  if ((long)get_global_id(0) >= items) "
         "return;\n  long at[" +
         std::to_string(op.n_in + op.n_out) +
         "];\n  const long id = get_global_id(0);\n  locate(at, " +
         std::to_string(op.n_in + op.n_out) + ", layout, rank, id);\n" + pointers + body + "}\n";
}

}  // namespace ocl
