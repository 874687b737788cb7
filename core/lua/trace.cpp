// SPDX-License-Identifier: Apache-2.0
//
// Symbolic tensors: the program that they belong to, and the Lua values that may stand for one.
#include <map>

#include "base/digest.h"
#include "lua/objects.h"

namespace orrery::lua {
namespace {

Trace* active = nullptr;
uint64_t traces_begun = 0;

// A HostTensor that is used in a trace becomes a state that nothing updates, shared by all
// programs. Its name contains a digest of its type and bytes, so that ranks or traces with other
// bytes have different programs.
std::shared_ptr<State> constant_state(lua_State* L, const HostTensor& tensor) {
  static std::map<std::string, std::weak_ptr<State>> made;
  Digest digest;
  digest.add(tensor.bytes->data(), tensor.type.bytes());
  const std::string name = fmt::format("constant.{} {}", digest.text(), to_string(tensor.type));
  if (auto known = made[name].lock()) return known;
  auto state = std::make_shared<State>();
  state->name = name;
  state->type = tensor.type;
  state->role = Role::state;
  state->initial.kind = Initial::data;
  state->initial.tensor = tensor;
  state->site.line = user_line(L);
  state->constant = true;
  made[name] = state;
  return state;
}

}  // namespace

Trace::Trace(lua_State* L, Program& program)
    : program_(program), serial_(++traces_begun), conditions_(L), outer_(active) {
  outer_regions_.swap(regions());
  active = this;
}

Trace::~Trace() {
  active = outer_;
  outer_regions_.swap(regions());
}

Trace* Trace::current() { return active; }

std::vector<std::string>& regions() {
  static std::vector<std::string> stack;
  return stack;
}

Program& program_here(lua_State* L) {
  if (!active) {
    fail(ORR_INVALID,
         "tensors are computed only while a function is traced: inside the loss of "
         "orrery.compile, orrery.value_and_grad or orrery.func; to compute with the numbers that a "
         "parameter has now, write parameter:read()");
  }
  active->program().set_site({regions().empty() ? "" : regions().back(), user_line(L)});
  return active->program();
}

void push_tensor(lua_State* L, ValueId id) { push(L, Tensor{id, active->serial()}); }

bool is_tensor(lua_State* L, int index) {
  return test<Tensor>(L, index) || test<StateRef>(L, index) || test<Scalar>(L, index) ||
         test<Host>(L, index);
}

ValueId value_at(lua_State* L, int index) {
  if (const auto* tensor = test<Tensor>(L, index)) {
    if (!active) program_here(L);  // throws: nothing is being traced
    if (tensor->trace != active->serial()) {
      fail(ORR_INVALID,
           "this tensor belongs to another traced function; pass it as an argument or an output");
    }
    return tensor->id;
  }
  Program& program = program_here(L);
  if (const auto* ref = test<StateRef>(L, index)) return program.state_value(ref->state);
  if (const auto* scalar = test<Scalar>(L, index))
    return program.scalar_input(scalar->name, ORR_F32);
  if (const auto* host = test<Host>(L, index)) {
    return program.state_value(constant_state(L, host->value));
  }
  fail(ORR_INVALID, "argument {} is {}, expected a tensor", index, describe(L, index));
}

Operand operand_at(lua_State* L, int index) {
  if (lua_type(L, index) == LUA_TNUMBER) return Operand::number(exact_number(L, index));
  return value_at(L, index);
}

std::vector<std::shared_ptr<State>> states_at(lua_State* L, int index) {
  if (const auto* one = test<StateRef>(L, index)) return {one->state};
  if (!lua_istable(L, index))
    fail(ORR_INVALID, "{} given, expected a list of parameters", describe(L, index));
  return list_at(L, index,
                 [](lua_State* state, int at) { return check<StateRef>(state, at).state; });
}

}  // namespace orrery::lua
