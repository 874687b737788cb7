// SPDX-License-Identifier: Apache-2.0
//
// Computes the initial values of states by a small program. A rank that holds a part computes the
// whole and keeps its part, so the values are the same on any number of ranks and in any layout.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

#include "base/error.h"
#include "lower/lower.h"
#include "program/elements.h"
#include "run/executor.h"
#include "run/profile.h"
#include "run/states.h"

namespace orrery {
namespace {

ValueId initial_value(Program& p, const State& s) {
  p.set_site({"initial", s.site.line});
  const Initial& init = s.initial;
  int32_t dtype = s.type.dtype == ORR_F64 ? ORR_F64 : ORR_F32;
  Type type{dtype, s.type.dims};
  ValueId u = p.random_uniform(type);
  if (init.kind == Initial::uniform) {
    ValueId scaled = p.pointwise(ORR_FN_MUL, {u, Operand::number(init.b - init.a)});
    return p.cast(p.pointwise(ORR_FN_ADD, {scaled, Operand::number(init.a)}), s.type.dtype);
  }
  // Normal numbers by Box and Muller, Ann. Math. Statist. 29 (1958).
  ValueId angle =
      p.pointwise(ORR_FN_MUL, {p.random_uniform(type), Operand::number(2 * std::numbers::pi)});
  ValueId log = p.pointwise(ORR_FN_LOG, {p.pointwise(ORR_FN_SUB, {p.constant(1, dtype), u})});
  ValueId radius = p.pointwise(ORR_FN_SQRT, {p.pointwise(ORR_FN_MUL, {log, Operand::number(-2)})});
  ValueId normal = p.pointwise(ORR_FN_MUL, {radius, p.pointwise(ORR_FN_COS, {angle})});
  ValueId scaled = p.pointwise(ORR_FN_MUL, {normal, Operand::number(init.b)});
  return p.cast(p.pointwise(ORR_FN_ADD, {scaled, Operand::number(init.a)}), s.type.dtype);
}

void draw(const std::shared_ptr<State>& state) {
  Program p;
  p.update(p.state_value(state), initial_value(p, *state));
  Mesh alone;
  LowerRequest request{&p, &alone, 1, 0, Runtime::get().kernels()};
  Executor executor(lower(request), Runtime::get());
  const Program& local = executor.plan().local.program;
  const Initial& initial = state->initial;
  for (size_t v = 0; v < local.values().size(); ++v) {
    if (local.values()[v].role != Role::scalar) continue;
    // The key has the state's ordinal in place of the step, so that no two states share a key.
    int64_t x =
        local.values()[v].name == "$seed" ? static_cast<int64_t>(initial.seed) : initial.ordinal;
    std::memcpy(executor.address(static_cast<ValueId>(v)), &x, sizeof x);
  }
  Profile::Timer timer(Profile::get().once("initial values"));
  executor.run();
}

void set_constant(const State& s) {
  double value = s.initial.kind == Initial::constant ? s.initial.a : 0;
  if (value == 0) return;  // the memory is zeroed already
  std::vector<std::byte> part(s.part.type(s.type).bytes());
  if (!part.empty()) write_element(s.type.dtype, part.data(), value);
  for (size_t done = static_cast<size_t>(orr_dtype_bytes(s.type.dtype)); done < part.size();
       done *= 2)
    std::memcpy(part.data() + done, part.data(), std::min(done, part.size() - done));
  write_part(s, part.data());
}

// Copies the value that another state has now, or its initial value.
void copy_other(const std::shared_ptr<State>& state) {
  State& other = *state->initial.of;
  if (!other.lies_somewhere()) {
    const std::shared_ptr<State> of = state->initial.of;
    state->initial = other.initial;
    return set_initial(state);
  }
  if (other.parts != state->parts || !other.coordinate_of.empty() || other.part != state->part)
    return fill_state(*state, read_state(other));
  std::vector<std::byte> part(state->part.type(state->type).bytes());
  read_part(other, part.data());
  write_part(*state, part.data());
}

void draw_part(State& state) {
  auto whole = std::make_shared<State>();
  whole->name = state.name, whole->type = state.type, whole->initial = state.initial;
  whole->site = state.site;
  materialize({whole});
  std::vector<std::byte> part(state.part.type(state.type).bytes());
  take_part(read_state(*whole), state.part, part.data());
  write_part(state, part.data());
}

}  // namespace

void set_initial(const std::shared_ptr<State>& state) {
  switch (state->initial.kind) {
    case Initial::data: return fill_state(*state, state->initial.tensor);
    case Initial::stored: return state->initial.read(*state);
    case Initial::like: return copy_other(state);
    case Initial::uniform:
    case Initial::normal: return state->part.is_whole() ? draw(state) : draw_part(*state);
    case Initial::constant: return set_constant(*state);
    case Initial::zeros: return;  // the memory is zeroed already
  }
}

}  // namespace orrery
