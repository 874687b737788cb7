// SPDX-License-Identifier: Apache-2.0
#include "expression.h"

#include <cmath>
#include <cstdio>
#include <cstring>

#include "op.h"

namespace orr_cuda {
namespace {

// A function of the prelude and how many registers it takes; null: written out below.
struct Word {
  int32_t fn;
  const char* name;
  int arity;
};
const Word words[] = {
    {ORR_FN_CAST, nullptr, 1},
    {ORR_FN_RAND, nullptr, 3},
    {ORR_FN_ADD, "add", 2},
    {ORR_FN_SUB, "subtract", 2},
    {ORR_FN_MUL, "multiply", 2},
    {ORR_FN_DIV, "divide", 2},
    {ORR_FN_MIN, "smaller", 2},
    {ORR_FN_MAX, "larger", 2},
    {ORR_FN_POW, "power", 2},
    {ORR_FN_FMA, "multiply_add", 3},
    {ORR_FN_MOD, "modulo", 2},
    {ORR_FN_NEG, "negative", 1},
    {ORR_FN_ABS, "absolute", 1},
    {ORR_FN_SIGN, "sign", 1},
    {ORR_FN_SQRT, "square_root", 1},
    {ORR_FN_RSQRT, "reciprocal_root", 1},
    {ORR_FN_RECIP, "reciprocal", 1},
    {ORR_FN_EXP, "exponential", 1},
    {ORR_FN_LOG, "logarithm", 1},
    {ORR_FN_TANH, "hyperbolic_tangent", 1},
    {ORR_FN_SIGMOID, "sigmoid", 1},
    {ORR_FN_ERF, "error_function", 1},
    {ORR_FN_SIN, "sine", 1},
    {ORR_FN_COS, "cosine", 1},
    {ORR_FN_FLOOR, "round_down", 1},
    {ORR_FN_CEIL, "round_up", 1},
    {ORR_FN_ROUND, "round_even", 1},
    {ORR_FN_GELU, "gelu", 1},
    {ORR_FN_GELU_GRAD, "gelu_grad", 1},
    {ORR_FN_EQ, "equal", 2},
    {ORR_FN_NE, "unequal", 2},
    {ORR_FN_LT, "less", 2},
    {ORR_FN_LE, "at_most", 2},
    {ORR_FN_GT, "greater", 2},
    {ORR_FN_GE, "at_least", 2},
    {ORR_FN_AND, "both", 2},
    {ORR_FN_OR, "either", 2},
    {ORR_FN_NOT, "opposite", 1},
    {ORR_FN_ISFINITE, "is_finite", 1},
    {ORR_FN_SELECT, "select", 3},
};

const Word& word_of(int32_t fn, const std::string& at) {
  for (const Word& w : words)
    if (w.fn == fn) return w;
  throw Unsupported(at + " has unknown function " + std::to_string(fn));
}

bool is_comparison(int32_t fn) { return fn >= ORR_FN_EQ && fn <= ORR_FN_GE; }
bool is_logic(int32_t fn) { return fn >= ORR_FN_AND && fn <= ORR_FN_NOT; }
bool needs_real(int32_t fn) {
  return fn == ORR_FN_RAND || (fn >= ORR_FN_SQRT && fn <= ORR_FN_GELU_GRAD);
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
  explicit Writer(const orr_op& op) : op_(op), e_(*op.expr) {}

  std::string run() {
    for (int k = 0; k < e_.n_instrs; ++k) instruction(k);
    return text_;
  }

 private:
  static std::string reg(int32_t r) { return "r" + std::to_string(r); }

  void instruction(int k) {
    const orr_instr& e = e_.instrs[k];
    const std::string at = "instruction " + std::to_string(k);
    require(orr_dtype_bytes(e.dtype) > 0, at + " has unknown dtype");
    text_ += std::string("  ") + register_type(e.dtype) + " " + reg(k) + "[V];\n  ";
    if (e.fn == ORR_FN_INPUT) return input(k, at);
    if (e.fn == ORR_FN_CONST) return each(k, literal(e.imm, e.dtype));
    const Word& word = word_of(e.fn, at);
    check_operands(k, word.arity, at);
    if (e.fn == ORR_FN_RAND) return random(k);
    if (e.fn == ORR_FN_CAST)
      return each(k, std::string("cast<") + register_type(e.dtype) + ">(" + reg(e.a) + "[v])");
    const int32_t operands[] = {e.a, e.b, e.c};
    std::string call = std::string(word.name) + "(";
    for (int i = 0; i < word.arity; ++i) call += (i ? ", " : "") + reg(operands[i]) + "[v]";
    each(k, call + ")");
  }

  void check_operands(int k, int arity, const std::string& at) const {
    const orr_instr& e = e_.instrs[k];
    const int32_t operands[] = {e.a, e.b, e.c};
    for (int i = 0; i < arity; ++i)
      require(operands[i] >= 0 && operands[i] < k,
              at + " uses a register that is not computed before it");
    if (e.fn == ORR_FN_CAST) return;
    const bool gives_bool = is_comparison(e.fn) || is_logic(e.fn) || e.fn == ORR_FN_ISFINITE;
    require(!gives_bool || e.dtype == ORR_BOOL, at + " must give bool");
    require(gives_bool || e.dtype != ORR_BOOL || e.fn == ORR_FN_SELECT || e.fn == ORR_FN_MIN ||
                e.fn == ORR_FN_MAX,
            at + " is arithmetic on bool");
    require(!needs_real(e.fn) || is_real(e.dtype), at + " needs a real dtype");
    if (e.fn == ORR_FN_ISFINITE)
      return require(is_real(e_.instrs[e.a].dtype), at + " needs a real operand");
    for (int i = 0; i < arity; ++i)
      require(e_.instrs[operands[i]].dtype == wanted(e, i),
              at + " has an operand of another dtype");
  }

  int32_t wanted(const orr_instr& e, int operand) const {
    if (e.fn == ORR_FN_RAND) return ORR_I64;
    if (is_logic(e.fn) || (e.fn == ORR_FN_SELECT && operand == 0)) return ORR_BOOL;
    return is_comparison(e.fn) ? e_.instrs[e.a].dtype : e.dtype;
  }

  void input(int k, const std::string& at) {
    const orr_instr& e = e_.instrs[k];
    require(e.a >= 0 && e.a < op_.n_in && op_.in[e.a].dtype == e.dtype,
            at + " reads an input that is missing or of another dtype");
    const std::string i = std::to_string(e.a);
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

  const orr_op& op_;
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

std::string expression_statements(const orr_op& op) {
  require(op.expr != nullptr, "a pointwise op needs an expression");
  require(op.expr->n_outputs == op.n_out,
          "the expression has another number of outputs than the op");
  const std::string text = Writer(op).run();
  for (int j = 0; j < op.n_out; ++j) {
    const int32_t r = op.expr->outputs[j];
    require(r >= 0 && r < op.expr->n_instrs && op.expr->instrs[r].dtype == op.out[j].dtype,
            "output " + std::to_string(j) + " is no register of its dtype");
  }
  return text;
}

}  // namespace orr_cuda
