// SPDX-License-Identifier: Apache-2.0
//
// States on the host device: one block of memory for all that are materialized together, first
// values by a small program of their own, so that they are the same on any number of ranks.
#include <cmath>
#include <cstring>
#include <numbers>

#include "base/error.h"
#include "lower/lower.h"
#include "plugin/host.h"
#include "run/executor.h"
#include "run/host_device.h"

namespace orrery {
namespace {

constexpr uint64_t kAlign = 64;

std::byte* address(const State& state) {
  return static_cast<std::byte*>(state.memory->host) + state.offset;
}

ValueId initial_value(Program& p, const State& s) {
  p.set_site({"initial " + s.name, s.site.line});
  const Initial& init = s.initial;
  int32_t dtype = s.type.dtype == ORR_F64 ? ORR_F64 : ORR_F32;
  Type type{dtype, s.type.dims};
  ValueId u = p.random_uniform(type);
  if (init.kind == Initial::uniform) {
    ValueId scaled = p.pointwise(ORR_FN_MUL, {u, Operand::number(init.b - init.a)});
    return p.cast(p.pointwise(ORR_FN_ADD, {scaled, Operand::number(init.a)}), s.type.dtype);
  }
  // Box and Muller, Ann. Math. Statist. 29 (1958).
  ValueId angle = p.pointwise(ORR_FN_MUL, {p.random_uniform(type), Operand::number(2 * std::numbers::pi)});
  ValueId log = p.pointwise(ORR_FN_LOG, {p.pointwise(ORR_FN_SUB, {p.constant(1, dtype), u})});
  ValueId radius = p.pointwise(ORR_FN_SQRT, {p.pointwise(ORR_FN_MUL, {log, Operand::number(-2)})});
  ValueId normal = p.pointwise(ORR_FN_MUL, {radius, p.pointwise(ORR_FN_COS, {angle})});
  ValueId scaled = p.pointwise(ORR_FN_MUL, {normal, Operand::number(init.b)});
  return p.cast(p.pointwise(ORR_FN_ADD, {scaled, Operand::number(init.a)}), s.type.dtype);
}

void draw(const std::shared_ptr<State>& state) {
  Program p;
  p.update(p.state_value(state), initial_value(p, *state));
  Spread alone;
  LowerRequest request{&p, &alone, 1, 0, Runtime::get().kernels()};
  Executor executor(lower(request), Runtime::get());
  const Program& local = executor.plan().local.program;
  for (size_t v = 0; v < local.values().size(); ++v) {
    if (local.values()[v].role != Role::scalar) continue;
    int64_t x = local.values()[v].name == "$seed" ? static_cast<int64_t>(runtime_options().seed) : 0;
    std::memcpy(executor.address(static_cast<ValueId>(v)), &x, sizeof x);
  }
  executor.run();
}

void set_constant(const State& s) {
  Program p;
  double value = s.initial.kind == Initial::constant ? s.initial.a : 0;
  auto fill = [&](auto x) {
    auto* to = reinterpret_cast<decltype(x)*>(address(s));
    std::fill(to, to + s.type.elements(), x);
  };
  switch (s.type.dtype) {
    case ORR_F32: return fill(static_cast<float>(value));
    case ORR_F64: return fill(value);
    case ORR_I32: return fill(static_cast<int32_t>(value));
    case ORR_I64: return fill(static_cast<int64_t>(value));
    case ORR_BF16: {
      float x = static_cast<float>(value);
      uint32_t bits;
      std::memcpy(&bits, &x, 4);
      return fill(static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16));
    }
    default:
      if (value != 0) fail(ORR_INVALID, "state '{}': {} can only begin as zeros or data", s.name, dtype_name(s.type.dtype));
      std::memset(address(s), 0, s.type.bytes());
  }
}

}  // namespace

void materialize(const std::vector<std::shared_ptr<State>>& states) {
  uint64_t bytes = 0;
  std::vector<std::shared_ptr<State>> fresh;
  for (auto& s : states)
    if (!s->memory && std::find(fresh.begin(), fresh.end(), s) == fresh.end()) {
      fresh.push_back(s);
      bytes += (s->type.bytes() + kAlign - 1) / kAlign * kAlign;
    }
  if (fresh.empty()) return;
  orr_memory* memory = nullptr;
  const orr_device_api& device = host_device();
  check(device.allocate(device.self, ORR_TIER_HOST, std::max<uint64_t>(bytes, kAlign), &memory),
        "memory for parameters and states");
  uint64_t offset = 0;
  for (auto& s : fresh) {
    s->memory = memory, s->offset = offset;
    offset += (s->type.bytes() + kAlign - 1) / kAlign * kAlign;
  }
  for (auto& s : fresh) {
    if (s->initial.kind == Initial::data) write_state(*s, s->initial.tensor);
    else if (s->initial.kind == Initial::uniform || s->initial.kind == Initial::normal) draw(s);
    else if (s->initial.kind == Initial::constant) set_constant(*s);  // zeros: memory comes zeroed
  }
}

HostTensor read_state(State& state) {
  if (!state.memory) fail(ORR_FAILED, "state '{}' has no value yet", state.name);
  HostTensor out = HostTensor::make(state.type);
  std::memcpy(out.bytes->data(), address(state), state.type.bytes());
  return out;
}

void write_state(State& state, const HostTensor& value) {
  if (value.type != state.type)
    fail(ORR_INVALID, "state '{}' is {}, the value given {}", state.name, to_string(state.type), to_string(value.type));
  if (!state.memory) fail(ORR_FAILED, "state '{}' has no memory yet", state.name);
  std::memcpy(address(state), value.bytes->data(), state.type.bytes());
}

}  // namespace orrery
