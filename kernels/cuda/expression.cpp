// SPDX-License-Identifier: Apache-2.0
#include "expression.h"

#include <cstdio>
#include <cstring>

#include <orrery/sdk/expression_checks.hpp>

#include "op.h"

namespace orr_cuda {
namespace {

// A function and its name in the prelude.
struct Word {
  int32_t fn;
  const char* name;
};
const Word words[] = {
    {ORR_FN_ADD, "add"},
    {ORR_FN_SUB, "subtract"},
    {ORR_FN_MUL, "multiply"},
    {ORR_FN_DIV, "divide"},
    {ORR_FN_MIN, "smaller"},
    {ORR_FN_MAX, "larger"},
    {ORR_FN_POW, "power"},
    {ORR_FN_FMA, "multiply_add"},
    {ORR_FN_MOD, "modulo"},
    {ORR_FN_NEG, "negative"},
    {ORR_FN_ABS, "absolute"},
    {ORR_FN_SIGN, "sign"},
    {ORR_FN_SQRT, "square_root"},
    {ORR_FN_RSQRT, "reciprocal_root"},
    {ORR_FN_RECIP, "reciprocal"},
    {ORR_FN_EXP, "exponential"},
    {ORR_FN_LOG, "logarithm"},
    {ORR_FN_TANH, "hyperbolic_tangent"},
    {ORR_FN_SIGMOID, "sigmoid"},
    {ORR_FN_ERF, "error_function"},
    {ORR_FN_SIN, "sine"},
    {ORR_FN_COS, "cosine"},
    {ORR_FN_FLOOR, "round_down"},
    {ORR_FN_CEIL, "round_up"},
    {ORR_FN_ROUND, "round_even"},
    {ORR_FN_GELU, "gelu"},
    {ORR_FN_GELU_GRAD, "gelu_grad"},
    {ORR_FN_EQ, "equal"},
    {ORR_FN_NE, "unequal"},
    {ORR_FN_LT, "less"},
    {ORR_FN_LE, "at_most"},
    {ORR_FN_GT, "greater"},
    {ORR_FN_GE, "at_least"},
    {ORR_FN_AND, "both"},
    {ORR_FN_OR, "either"},
    {ORR_FN_NOT, "opposite"},
    {ORR_FN_ISFINITE, "is_finite"},
    {ORR_FN_SELECT, "select"},
};

const char* name_of(int32_t fn) {
  const Word* word = words;
  while (word->fn != fn) ++word;
  return word->name;
}

// The value of a constant, exactly, rounded by the prelude as any other result.
std::string literal(double value, int32_t dtype) {
  char text[64];
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  if (dtype == ORR_BOOL) return value != 0 ? "true" : "false";
  snprintf(text, sizeof text, "cast<%s>(bits_f64(0x%016llxull))", register_type(dtype),
           static_cast<unsigned long long>(bits));
  return text;
}

class Writer {
 public:
  explicit Writer(const orr_expr& e) : e_(e) {}

  std::string run() {
    for (int k = 0; k < e_.n_instrs; ++k) instruction(k);
    return text_;
  }

 private:
  static std::string reg(int32_t r) { return "r" + std::to_string(r); }

  void instruction(int k) {
    const orr_instr& e = e_.instrs[k];
    text_ += std::string("  ") + register_type(e.dtype) + " " + reg(k) + "[V];\n  ";
    if (e.fn == ORR_FN_INPUT) return input(k);
    if (e.fn == ORR_FN_CONST) return each(k, literal(e.imm, e.dtype));
    if (e.fn == ORR_FN_RAND) return random(k);
    if (e.fn == ORR_FN_CAST) {
      const bool to_i32 = e.dtype == ORR_I32 && is_real(e_.instrs[e.a].dtype);
      const std::string to = std::string("cast<") + register_type(e.dtype) + ">";
      return each(k, (to_i32 ? "cast_i32" : to) + "(" + reg(e.a) + "[v])");
    }
    const int32_t operands[] = {e.a, e.b, e.c};
    std::string call = std::string(name_of(e.fn)) + "(";
    for (int i = 0; i < arity(e.fn); ++i) call += (i ? ", " : "") + reg(operands[i]) + "[v]";
    each(k, call + ")");
  }

  void input(int k) {
    const std::string i = std::to_string(e_.instrs[k].a);
    text_ += "load(p" + i + ", s" + i + ", " + reg(k) + ");\n";
  }

  void random(int k) {
    const orr_instr& e = e_.instrs[k];
    char id[16];
    snprintf(id, sizeof id, "%uu", static_cast<uint32_t>(e.imm));
    text_ += "uniform(" + reg(e.a) + "[0], " + reg(e.b) + "[0], " + reg(e.c) + "[0] + e, " + id +
             ", " + reg(k) + ");\n  ";
    each(k, reg(k) + "[v]");
  }

  // One statement for all elements, rounded (wrapped) to the dtype.
  void each(int k, const std::string& value) {
    const int32_t dtype = e_.instrs[k].dtype;
    const bool narrow =
        dtype == ORR_BF16 || dtype == ORR_F16 || dtype == ORR_I32 || dtype == ORR_U8;
    text_ += "ORR_EACH " + reg(k) + "[v] = ";
    text_ += narrow ? std::string("narrow<") + memory_type(dtype) + ">(" + value + ");\n"
                    : value + ";\n";
  }

  const orr_expr& e_;
  std::string text_;
};

}  // namespace

const char* register_type(int32_t dtype) {
  switch (dtype) {
    case ORR_F64: return "double";
    case ORR_BOOL: return "bool";
    case ORR_F32:
    case ORR_BF16:
    case ORR_F16: return "float";
    default: return "long long";
  }
}

const char* memory_type(int32_t dtype) {
  static const char* const types[] = {nullptr, "float",     "double",        "Bf16",         "F16",
                                      "int",   "long long", "unsigned char", "unsigned char"};
  return types[dtype];
}

std::string expression_statements(const orr_op& op) { return Writer(*op.expr).run(); }

}  // namespace orr_cuda
