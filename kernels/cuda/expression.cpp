// SPDX-License-Identifier: Apache-2.0
#include "expression.h"

#include <cstdio>
#include <cstring>
#include <iterator>
#include <utility>

#include <orrery/sdk/expression_checks.hpp>

#include "op.h"

namespace orr_cuda {
namespace {

// The functions of ops.h by their names in CUDA or the prelude, or their operators: those from ADD,
// from NEG and from EQ on.
const char* const from_add[] = {"add",    "subtract", "multiply", "divide", "smaller",
                                "larger", "pow",      "fma",      "modulo"};
const char* const from_neg[] = {"negative",   "absolute", "sign",     "sqrt",  "reciprocal_root",
                                "reciprocal", "exp",      "log",      "tanh",  "sigmoid",
                                "erf",        "sin",      "cos",      "floor", "ceil",
                                "rint",       "gelu",     "gelu_grad"};
const char* const from_eq[] = {
    "==", "!=", "<", "<=", ">", ">=", "&&", "||", "!", "is_finite", "select"};
static_assert(ORR_FN_ADD + std::size(from_add) - 1 == ORR_FN_MOD &&
              ORR_FN_NEG + std::size(from_neg) - 1 == ORR_FN_GELU_GRAD &&
              ORR_FN_EQ + std::size(from_eq) - 1 == ORR_FN_SELECT);

const char* name_of(int32_t fn) {
  if (fn >= ORR_FN_EQ) return from_eq[fn - ORR_FN_EQ];
  return fn >= ORR_FN_NEG ? from_neg[fn - ORR_FN_NEG] : from_add[fn - ORR_FN_ADD];
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
    for (const bool loads : {true, false})  // first, so that all are under way at once
      for (int k = 0; k < e_.n_instrs; ++k)
        if ((e_.instrs[k].fn == ORR_FN_INPUT) == loads) instruction(k);
    return text_;
  }

 private:
  static std::string reg(int32_t r) { return "r" + std::to_string(r); }

  // The function of an instruction: the brief form where there is one and the result has 16 bits.
  static std::string function(const orr_instr& e) {
    const bool short_result = e.dtype == ORR_BF16 || e.dtype == ORR_F16;
    const bool has_brief = e.fn == ORR_FN_EXP || e.fn == ORR_FN_SIGMOID || e.fn == ORR_FN_GELU ||
                           e.fn == ORR_FN_GELU_GRAD;
    return name_of(e.fn) + std::string(short_result && has_brief ? "_brief" : "");
  }

  void instruction(int k) {
    const orr_instr& e = e_.instrs[k];
    text_ += std::string("  ") + register_type(e.dtype) + " " + reg(k) + "[V];\n  ";
    if (e.fn == ORR_FN_INPUT) return input(k);
    if (e.fn == ORR_FN_CONST) return each(k, literal(e.imm, e.dtype));
    if (e.fn == ORR_FN_RAND) return random(k);
    if (e.fn == ORR_FN_CAST) {
      const int32_t from = e_.instrs[e.a].dtype;
      const bool to_i32 = e.dtype == ORR_I32 && (is_real(from) || is_eight_bits(from));
      const std::string to = std::string("cast<") + register_type(e.dtype) + ">";
      return each(k, (to_i32 ? "cast_i32" : to) + "(" + reg(e.a) + "[v])");
    }
    const int32_t operands[] = {e.a, e.b, e.c};
    const bool between = e.fn >= ORR_FN_EQ && e.fn <= ORR_FN_OR;
    std::string call = between ? "(" : function(e) + "(";
    for (int i = 0; i < arity(e.fn); ++i)
      call += (i == 0 ? "" : between ? function(e) : ", ") + reg(operands[i]) + "[v]";
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
    const bool narrow = dtype == ORR_BF16 || dtype == ORR_F16 || is_eight_bits(dtype) ||
                        dtype == ORR_I32 || dtype == ORR_U8;
    text_ += "ORR_EACH " + reg(k) + "[v] = ";
    text_ += narrow ? std::string("narrow<") + memory_type(dtype) + ">(" + value + ");\n"
                    : value + ";\n";
  }

  const orr_expr& e_;
  std::string text_;
};

}  // namespace

const char* register_type(int32_t dtype) {
  if (dtype == ORR_F64 || dtype == ORR_BOOL) return dtype == ORR_F64 ? "double" : "bool";
  return is_real(dtype) || is_eight_bits(dtype) ? "float" : "long long";
}

const char* memory_type(int32_t dtype) {
  static const char* const types[] = {nullptr,         "float",  "double",    "Bf16",
                                      "F16",           "int",    "long long", "unsigned char",
                                      "unsigned char", "F8E4M3", "F8E5M2"};
  return types[dtype];
}

std::vector<int> terms_of(const orr_expr& e, int r) {
  const orr_instr& i = e.instrs[r];
  if (i.fn == ORR_FN_INPUT) return {i.a};
  require(i.fn == ORR_FN_ADD, "more than sums");
  std::vector<int> all = terms_of(e, i.a), others = terms_of(e, i.b);
  if (all.size() < others.size()) std::swap(all, others);
  all.insert(all.end(), others.begin(), others.end());
  require(all.size() <= 3, "more than three terms");
  return all;
}

std::string expression_statements(const orr_op& op) { return Writer(*op.expr).run(); }

}  // namespace orr_cuda
