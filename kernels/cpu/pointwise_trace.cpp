// SPDX-License-Identifier: Apache-2.0
//
// See pointwise_trace.h. The functions of vmath.h run here on lanes that only record operations.
#define ORR_ISA traced
#define ORR_TRACED
#include "pointwise_trace_memory.h"

namespace orr_cpu::pointwise {
namespace {

thread_local Trace* noted;

int32_t add(Node n) {
  Trace& t = *noted;
  const auto constant = [&](int32_t at) { return t[size_t(at)].kind == Node::CONSTANT; };
  if (n.kind == Node::XOR && constant(n.operand[0]) && constant(n.operand[1])) {  // a sign
    const uint64_t bits = t[size_t(n.operand[0])].number ^ t[size_t(n.operand[1])].number;
    n = {Node::CONSTANT, n.wide, 0, {-1, -1, -1}, bits};
  }
  t.push_back(n);
  return int32_t(t.size()) - 1;
}

}  // namespace

int32_t note(Node::Kind kind, int32_t a, int32_t b, int32_t c, uint64_t number) {
  return add({kind, false, 0, {a, b, c}, number});
}
int32_t note_wide(Node::Kind kind, int32_t a, int32_t b, int32_t c, uint64_t number, int half) {
  return add({kind, true, int8_t(half), {a, b, c}, number});
}
int32_t note_random(const Random& random) {
  noted->random.push_back(random);
  return note(Node::RANDOM, -1, -1, -1, noted->random.size() - 1);
}

}  // namespace orr_cpu::pointwise

namespace orr_cpu::traced {
namespace {

using pointwise::Compiled;
using pointwise::Step;
using pointwise::Trace;

struct Tracer {
  Slots slots;
  v16f x{-1};  // the accumulator

  // Whether the step can be translated; notes it.
  bool take(const Step& s) {
    switch (s.code) {
#define ORR_STEP(code, result)                                       \
  case pointwise::code: {                                            \
    [[maybe_unused]] const auto a = [&] { return slots.load(s.a); }; \
    [[maybe_unused]] const auto b = [&] { return slots.load(s.b); }; \
    x = result;                                                      \
    return true;                                                     \
  }
#define A a()
#define B b()
#include "pointwise_steps.inc"
#undef A
#undef B
      case pointwise::LOAD_BF16: x = as_float(shift_left(load_u16(s.a), 16)); return true;
      case pointwise::LOAD_F16: x = load_f16(s.a); return true;
      case pointwise::STORE_BF16: store_u16(s.a, shift_right(as_int(x), 16)); return true;
      case pointwise::STORE_F16: store_f16(s.a, x); return true;
      case pointwise::STORE: slots.is_output(s.a) ? store(s.a, x) : slots.set(s.a, x); return true;
      case pointwise::CALL:
        return each_lane(s.fn,
                         [&](auto fn) { slots.set(s.c, fn(slots.load(s.a), slots.load(s.b))); });
      case pointwise::WIDE_REAL: return take_real(s, slots);
      case pointwise::WIDE_INT: return take_integer(s, slots);
      case pointwise::CONVERT: return take_conversion(s, slots);
      case pointwise::WIDEN: return take_widening(s, slots);
      case pointwise::NARROW: return take_narrowing(s, slots);
      case pointwise::RANDOM: return take_random(s, slots);
      default: return false;
    }
  }
};

}  // namespace
}  // namespace orr_cpu::traced

namespace orr_cpu::pointwise {

Trace trace(const Compiled& code) {
  Trace out;
  noted = &out;
  traced::Tracer tracer{traced::Slots(code)};
  for (const Step& s : code.body)
    if (s.code != END && !tracer.take(s)) return {};
  return out;
}

}  // namespace orr_cpu::pointwise
