// SPDX-License-Identifier: Apache-2.0
//
// See pointwise_compile.h.
#include "pointwise_compile.h"

#include <algorithm>
#include <utility>

namespace orr_cpu::pointwise {
namespace {

bool is_half(int32_t dtype) { return dtype == ORR_BF16 || dtype == ORR_F16; }
bool is_float(int32_t dtype) { return dtype == ORR_F32 || is_half(dtype) || is_eight_bits(dtype); }
// Whether values of this dtype are floats that have been rounded.
bool is_rounded(int32_t dtype) { return is_float(dtype) && dtype != ORR_F32; }

struct Emitter {
  const orr_op& op;
  const orr_instr* instrs;
  Compiled out;
  std::vector<Step>* code = nullptr;
  std::vector<int> uses;              // still to come, per register
  std::vector<int> slot;              // of a register, -1: not computed or only in the accumulator
  std::vector<char> uniform, pinned;  // same for all elements; slot never freed
  std::vector<int> free_slots;

  explicit Emitter(const orr_op& op)
      : op(op),
        instrs(op.expr->instrs),
        uses(op.expr->n_instrs),
        slot(op.expr->n_instrs, -1),
        uniform(op.expr->n_instrs),
        pinned(op.expr->n_instrs) {}

  static int operands(const orr_instr& i, int (&r)[3]) {
    r[0] = i.a, r[1] = i.b, r[2] = i.c;
    switch (i.fn) {
      case ORR_FN_INPUT:
      case ORR_FN_CONST: return 0;
      case ORR_FN_FMA:
      case ORR_FN_SELECT:
      case ORR_FN_RAND: return 3;
      case ORR_FN_CAST:
      case ORR_FN_NOT:
      case ORR_FN_ISFINITE: return 1;
      default: return i.fn >= ORR_FN_NEG && i.fn <= ORR_FN_GELU_GRAD ? 1 : 2;
    }
  }

  // Marks what the outputs need, counts uses, and finds what is the same for all elements.
  void analyse() {
    const int n = op.expr->n_instrs;
    for (int j = 0; j < op.expr->n_outputs; ++j) ++uses[op.expr->outputs[j]];
    for (int k = n - 1; k >= 0; --k) {
      int r[3], count = operands(instrs[k], r);
      if (uses[k])
        for (int i = 0; i < count; ++i) ++uses[r[i]];
    }
    for (int k = 0; k < n; ++k) {
      int r[3], count = operands(instrs[k], r);
      bool same = instrs[k].fn != ORR_FN_RAND;
      if (instrs[k].fn == ORR_FN_INPUT) same = is_uniform(op.in[instrs[k].a]);
      for (int i = 0; i < count; ++i) same = same && uniform[r[i]];
      uniform[k] = same;
    }
  }

  int new_slot() {
    if (free_slots.empty()) return out.slots++;
    int s = free_slots.back();
    free_slots.pop_back();
    return s;
  }
  Step& emit(Code c, int a = 0, int b = 0, int dst = 0, int d = 0) {
    code->push_back(
        {uint16_t(c), uint16_t(a), uint16_t(b), uint16_t(dst), uint16_t(d), 0, 0, 0, 0});
    return code->back();
  }
  // One use of register r is done.
  void used(int r) {
    if (--uses[r] == 0 && slot[r] >= 0 && !pinned[r]) free_slots.push_back(slot[r]);
  }

  // Makes the slot of a leaf: an input, a constant.
  void leaf(int r) {
    const orr_instr& i = instrs[r];
    pinned[r] = 1;
    slot[r] = out.slots++;
    if (i.fn == ORR_FN_CONST) return out.constant.push_back({slot[r], i.dtype, i.imm});
    const orr_tensor& t = op.in[i.a];
    Walk w = walk_of(op, t, i.a);
    w.slot = slot[r];
    (uniform[r] ? out.uniform : out.in).push_back(w);
    if (t.dtype == ORR_F32 || t.dtype == ORR_F64 || t.dtype == ORR_I64) return;
    int raw = slot[r];
    slot[r] = out.slots++;
    if (is_half(t.dtype)) {
      emit(t.dtype == ORR_BF16 ? LOAD_BF16 : LOAD_F16, raw);
      emit(STORE, slot[r]);
    } else {
      emit(WIDEN, raw, 0, slot[r]).from = int16_t(t.dtype);
    }
  }

  // The slot that holds register r, computing it if need be.
  int in_slot(int r) {
    if (slot[r] >= 0) return slot[r];
    const orr_instr& i = instrs[r];
    if (i.fn == ORR_FN_INPUT || i.fn == ORR_FN_CONST) {
      leaf(r);
      return slot[r];
    }
    if (is_memory(i)) {
      memory(r);
      return slot[r];
    }
    accumulate(r);
    if (slot[r] < 0) keep(r);
    return slot[r];
  }
  // Stores the accumulator, which is register r.
  void keep(int r) {
    slot[r] = new_slot();
    pinned[r] = uniform[r];
    emit(STORE, slot[r]);
  }

  bool is_memory(const orr_instr& i) const {
    if (!is_narrow(i.dtype) || i.fn == ORR_FN_RAND) return true;
    int r[3], n = operands(i, r);
    for (int k = 0; k < n; ++k)
      if (!is_narrow(instrs[r[k]].dtype)) return true;
    switch (i.fn) {
      case ORR_FN_POW:
      case ORR_FN_MOD:
      case ORR_FN_EXP:
      case ORR_FN_LOG:
      case ORR_FN_TANH:
      case ORR_FN_SIGMOID:
      case ORR_FN_ERF:
      case ORR_FN_SIN:
      case ORR_FN_COS:
      case ORR_FN_GELU:
      case ORR_FN_GELU_GRAD: return true;
      default: return false;
    }
  }

  void memory(int r) {
    const orr_instr& i = instrs[r];
    int reg[3], n = operands(i, reg), s[3] = {};
    for (int k = 0; k < n; ++k) s[k] = in_slot(reg[k]);
    int type = n ? instrs[reg[n - 1]].dtype : i.dtype;  // of the operands
    Code c = is_narrow(type) ? CALL : type == ORR_F64 ? WIDE_REAL : WIDE_INT;
    if (i.fn == ORR_FN_CAST) c = CONVERT;
    if (i.fn == ORR_FN_RAND) c = RANDOM;
    slot[r] = new_slot();  // before the operands' go: their elements may have another width
    for (int k = 0; k < n; ++k) used(reg[k]);
    pinned[r] = uniform[r];
    Step& step = emit(c, s[0], s[1], slot[r], s[2]);
    step.fn = int16_t(i.fn);
    step.from = int16_t(type);
    step.dtype = int16_t(i.dtype);
    step.imm = i.imm;
    if (is_rounded(i.dtype)) {
      int at = slot[r];
      emit(LOAD, at);
      round_to(i.dtype);
      emit(STORE, at);
    }
  }
  void round_to(int32_t dtype) {
    switch (dtype) {
      case ORR_BF16: emit(ROUND_BF16); break;
      case ORR_F16: emit(ROUND_F16); break;
      case ORR_F8_E4M3: emit(ROUND_E4M3); break;
      default: emit(ROUND_E5M2);
    }
  }

  // Computes register r into the accumulator; one that is used again is also kept.
  void accumulate(int r) {
    const orr_instr& i = instrs[r];
    if (slot[r] >= 0 || is_memory(i) || i.fn == ORR_FN_INPUT || i.fn == ORR_FN_CONST) {
      emit(LOAD, in_slot(r));
      return;
    }
    int reg[3], n = operands(i, reg);
    if (n == 1) {
      unary(i);
    } else if (n == 2) {
      binary(i);
    } else {
      ternary(i);
    }
    if (is_rounded(i.dtype) && !is_exact(i)) round_to(i.dtype);
    if (uses[r] > 1) keep(r);
  }

  // Whether a rounded result of operands of that type needs no rounding.
  static bool is_exact(const orr_instr& i) {
    return i.fn == ORR_FN_NEG || i.fn == ORR_FN_ABS || i.fn == ORR_FN_SIGN || i.fn == ORR_FN_MIN ||
           i.fn == ORR_FN_MAX || i.fn == ORR_FN_SELECT;
  }

  void unary(const orr_instr& i) {
    accumulate(i.a);
    used(i.a);
    int from = instrs[i.a].dtype;
    switch (i.fn) {
      case ORR_FN_CAST:
        if (i.dtype == ORR_BOOL && from != ORR_BOOL) emit(NONZERO);
        if (i.dtype != ORR_BOOL && from == ORR_BOOL) emit(MASK_TO_ONE);
        break;
      case ORR_FN_NEG: emit(NEG); break;
      case ORR_FN_ABS: emit(ABS); break;
      case ORR_FN_SIGN: emit(SIGN); break;
      case ORR_FN_SQRT: emit(SQRT); break;
      case ORR_FN_RSQRT: emit(RSQRT); break;
      case ORR_FN_RECIP: emit(RECIP); break;
      case ORR_FN_FLOOR: emit(FLOOR); break;
      case ORR_FN_CEIL: emit(CEIL); break;
      case ORR_FN_ROUND: emit(ROUND); break;
      case ORR_FN_NOT: emit(NOT); break;
      default: emit(ISFINITE);
    }
  }

  // The step of x = x fn slot, or of x = slot fn x when exchanged.
  static Code binary_code(int fn, bool exchanged) {
    switch (fn) {
      case ORR_FN_ADD: return ADD;
      case ORR_FN_SUB: return exchanged ? SUB_R : SUB;
      case ORR_FN_MUL: return MUL;
      case ORR_FN_DIV: return exchanged ? DIV_R : DIV;
      case ORR_FN_MIN: return MIN;
      case ORR_FN_MAX: return MAX;
      case ORR_FN_EQ: return EQ;
      case ORR_FN_NE: return NE;
      case ORR_FN_LT: return exchanged ? GT : LT;
      case ORR_FN_LE: return exchanged ? GE : LE;
      case ORR_FN_GT: return exchanged ? LT : GT;
      case ORR_FN_GE: return exchanged ? LE : GE;
      case ORR_FN_AND: return AND;
      default: return OR;
    }
  }

  bool ready(int r) const {
    int fn = instrs[r].fn;
    return slot[r] >= 0 || fn == ORR_FN_INPUT || fn == ORR_FN_CONST;
  }

  void binary(const orr_instr& i) {
    bool exchanged = ready(i.a) && !ready(i.b);
    int first = exchanged ? i.b : i.a, second = exchanged ? i.a : i.b;
    if (first != second) in_slot(second);
    accumulate(first);
    int s = in_slot(second);
    used(first);
    used(second);
    if (instrs[first].dtype == ORR_BOOL && (i.fn == ORR_FN_EQ || i.fn == ORR_FN_NE)) {
      emit(XOR, s);
      if (i.fn == ORR_FN_EQ) emit(NOT);
      return;
    }
    emit(binary_code(i.fn, exchanged), s);
  }

  void ternary(const orr_instr& i) {
    bool add = i.fn == ORR_FN_FMA && !ready(i.c) && i.c != i.a && i.c != i.b;
    int first = add ? i.c : i.a, second = add ? i.a : i.b, third = add ? i.b : i.c;
    if (second != first) in_slot(second);
    if (third != first) in_slot(third);
    accumulate(first);
    int s = in_slot(second), t = in_slot(third);
    used(first), used(second), used(third);
    emit(i.fn == ORR_FN_SELECT ? SELECT : add ? FMA_ADD : FMA, s, t);
  }

  // Everything that is the same for all elements and that varying instructions or outputs need.
  void prologue() {
    code = &out.prologue;
    for (int k = 0; k < op.expr->n_instrs; ++k)
      if (uses[k] && uniform[k]) needed(k);
    emit(END);
  }
  void needed(int k) {
    const int n = op.expr->n_instrs;
    bool wanted = false;
    for (int j = 0; j < op.expr->n_outputs; ++j) wanted = wanted || op.expr->outputs[j] == k;
    for (int u = k + 1; u < n; ++u) {
      int r[3], count = operands(instrs[u], r);
      for (int i = 0; i < count; ++i) wanted = wanted || (r[i] == k && uses[u] && !uniform[u]);
    }
    if (wanted) in_slot(k);
  }

  // Inputs are read before any output is written, so only the last output to be computed leaves the
  // accumulator for memory at once; the others wait in their slots.
  void body() {
    code = &out.body;
    const int n = op.expr->n_outputs;
    std::vector<int> order(n);
    for (int j = 0; j < n; ++j) order[j] = j;
    std::sort(order.begin(), order.end(),
              [&](int a, int b) { return op.expr->outputs[a] < op.expr->outputs[b]; });
    for (int j = 0; j < n - 1; ++j) hold(op.expr->outputs[order[j]]);
    for (int j = n - 1; j >= 0; --j) output(order[j], op.expr->outputs[order[j]]);
    emit(END);
  }
  // Brings register r into a slot that no output can overwrite: not an input's own memory.
  void hold(int r) {
    int from = in_slot(r);
    if (uniform[r] || instrs[r].fn != ORR_FN_INPUT) return;
    int32_t dtype = instrs[r].dtype;
    slot[r] = out.slots++;
    if (is_narrow(dtype)) {
      emit(LOAD, from);
      emit(STORE, slot[r]);
    } else {
      Step& step = emit(CONVERT, from, 0, slot[r]);
      step.from = step.dtype = int16_t(dtype);
    }
  }
  void output(int j, int r) {
    Walk w = walk_of(op, op.out[j], j);
    w.slot = out.slots++;
    out.out.push_back(w);
    int32_t dtype = op.out[j].dtype;
    if (!is_float(dtype) || is_eight_bits(dtype)) {
      emit(NARROW, in_slot(r), 0, w.slot).dtype = int16_t(dtype);
      return;
    }
    accumulate(r);
    emit(dtype == ORR_BF16 ? STORE_BF16 : dtype == ORR_F16 ? STORE_F16 : STORE, w.slot);
  }
};

// Finds the inputs that repeat one row, such as biases, if all of them have the same length: the
// machine code then goes through many rows at once.
void find_rows(Compiled& c) {
  for (Walk& w : c.in) {
    const bool rows =
        w.rank == 1 && w.inner == 1 && w.strides[0] == 0 && w.run % kTurn == 0 && w.run < INT32_MAX;
    w.again = rows && (!c.period || c.period == w.run);
    if (w.again) c.period = w.run;
  }
}

}  // namespace

bool is_narrow(int32_t dtype) { return is_float(dtype) || dtype == ORR_BOOL; }

Compiled compile(const orr_op& op) {
  Emitter e(op);
  e.analyse();
  e.prologue();
  e.body();
  find_rows(e.out);
  return std::move(e.out);
}

}  // namespace orr_cpu::pointwise
