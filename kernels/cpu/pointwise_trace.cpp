// SPDX-License-Identifier: Apache-2.0
//
// See pointwise_trace.h. The functions of vmath.h run here on lanes that only record operations.
#define ORR_ISA traced
#define ORR_TRACED
#include "pointwise_functions.h"

namespace orr_cpu::pointwise {
namespace {

thread_local Trace* noted;

}  // namespace

int32_t note(Node::Kind kind, int32_t a, int32_t b, int32_t c, uint32_t number) {
  Trace& t = *noted;
  const auto constant = [&](int32_t n) { return t[size_t(n)].kind == Node::CONSTANT; };
  if (kind == Node::XOR && constant(a) && constant(b))  // the sign of a constant
    kind = Node::CONSTANT, number = t[size_t(a)].number ^ t[size_t(b)].number, a = b = -1;
  t.push_back({kind, {a, b, c}, number});
  return int32_t(t.size()) - 1;
}

}  // namespace orr_cpu::pointwise

namespace orr_cpu::traced {
namespace {

using pointwise::Compiled;
using pointwise::Step;
using pointwise::Trace;

struct Tracer {
  enum Place : char { UNIFORM, INPUT, OUTPUT };
  std::vector<Place> place;    // of each slot's values, unless the body computes them
  std::vector<int32_t> value;  // the node that a slot holds, or -1
  v16f x{-1};                  // the accumulator

  explicit Tracer(const Compiled& c) : place(size_t(c.slots)), value(size_t(c.slots), -1) {
    for (const auto& w : c.in) place[size_t(w.slot)] = INPUT;
    for (const auto& w : c.out) place[size_t(w.slot)] = OUTPUT;
  }

  v16f load(uint32_t slot) const {
    if (value[slot] >= 0) return {value[slot]};
    return {note(place[slot] == INPUT ? Node::LOAD : Node::UNIFORM, -1, -1, -1, slot)};
  }

  // Whether the step can be translated; notes it.
  bool take(const Step& s) {
    switch (s.code) {
#define ORR_STEP(code, result)                                 \
  case pointwise::code: {                                      \
    [[maybe_unused]] const auto a = [&] { return load(s.a); }; \
    [[maybe_unused]] const auto b = [&] { return load(s.b); }; \
    x = result;                                                \
    return true;                                               \
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
      case pointwise::STORE:
        place[s.a] == OUTPUT ? store(s.a, x) : void(value[s.a] = x.node);
        return true;
      case pointwise::CALL:
        return each_lane(s.fn, [&](auto fn) { value[s.c] = fn(load(s.a), load(s.b)).node; });
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
  traced::Tracer tracer(code);
  for (const Step& s : code.body)
    if (s.code != END && !tracer.take(s)) return {};
  return out;
}

}  // namespace orr_cpu::pointwise
