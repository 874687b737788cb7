// SPDX-License-Identifier: Apache-2.0
//
// Parameters and other states in Lua, and run-time numbers (orrery.input).
#include <map>

#include "lua/api.h"
#include "lua/objects.h"
#include "run/replicas.h"

namespace orrery::lua {
namespace {

std::map<std::string, std::shared_ptr<double>>& inputs() {
  static std::map<std::string, std::shared_ptr<double>> made;
  return made;
}

// {kind = "normal", a = 0, b = 0.02}, a number, or a HostTensor.
Initial initial_at(lua_State* L, int index, const Type& type) {
  Initial initial;
  if (lua_isnil(L, index)) return initial;
  if (const auto* host = test<Host>(L, index)) {
    if (host->value.type.dims != type.dims || host->value.type.dtype != type.dtype) {
      fail(ORR_INVALID, "initial value is {}, the state is {}", to_string(host->value.type),
           to_string(type));
    }
    initial.kind = Initial::data;
    initial.tensor = host->value;
    return initial;
  }
  if (lua_type(L, index) == LUA_TNUMBER) {
    initial.kind = Initial::constant;
    initial.a = lua_tonumber(L, index);
    return initial;
  }
  if (!lua_istable(L, index)) {
    fail(ORR_INVALID, "initial value is {}, expected a number, a HostTensor or one of nn.init",
         describe(L, index));
  }
  const std::string kind = option_text(L, index, "kind");
  initial.kind = kind == "uniform"  ? Initial::uniform
                 : kind == "normal" ? Initial::normal
                                    : Initial::constant;
  initial.a = option_real(L, index, "a");
  initial.b = option_real(L, index, "b");
  if (initial.is_random()) initial.ordinal = ++ordinals().drawn;
  initial.seed = runtime_options().seed;
  return initial;
}

int make_state(lua_State* L, Role role) {
  auto state = std::make_shared<State>();
  state->type = {ORR_F32, to_integers(L, 1, "dims")};
  for (int64_t dim : state->type.dims) {
    if (dim < 1) fail(ORR_INVALID, "dims {}: every dim is at least 1", to_string(state->type.dims));
  }
  lua_getfield(L, 2, "dtype");
  state->type.dtype = to_dtype(L, -1);
  lua_getfield(L, 2, "name");
  state->name = to_text(L, -1, "name");
  if (state->name.empty()) state->name = fmt::format("unnamed.{}", ++ordinals().unnamed);
  lua_getfield(L, 2, "init");
  state->initial = initial_at(L, lua_gettop(L), state->type);
  state->role = role;
  state->site.line = user_line(L);
  push(L, StateRef{state});
  return 1;
}

std::vector<std::weak_ptr<State>>& buffers() {
  static std::vector<std::weak_ptr<State>> made;
  return made;
}

int parameter(lua_State* L) { return make_state(L, Role::param); }
int own_buffer(lua_State* L) { return make_state(L, Role::state); }
int buffer(lua_State* L) {
  make_state(L, Role::state);
  buffers().push_back(check<StateRef>(L, -1).state);
  return 1;
}

int read(lua_State* L) {
  const auto& state = check<StateRef>(L, 1).state;
  materialize({state});
  push(L, Host{read_state(*state)});
  return 1;
}

int write(lua_State* L) {
  const auto& state = check<StateRef>(L, 1).state;
  const HostTensor value =
      lua_istable(L, 2) ? host_from_table(L, 2, state->type.dtype) : host_at(L, 2);
  if (!(value.type == state->type)) {
    fail(ORR_INVALID, "write: {} is {}, the value is {}", state->name, to_string(state->type),
         to_string(value.type));
  }
  materialize({state});
  give_state(state, value, user_line(L));
  return 0;
}

int update(lua_State* L) {
  Program& program = program_here(L);
  program.update(program.state_value(check<StateRef>(L, 1).state), value_at(L, 2));
  return 0;
}

int set_name(lua_State* L) {
  check<StateRef>(L, 1).state->name = to_text(L, 2, "name");
  return 0;
}

int freeze(lua_State* L) {
  check<StateRef>(L, 1).state->frozen = lua_toboolean(L, 2);
  return 0;
}

int same(lua_State* L) {
  const auto* a = test<StateRef>(L, 1);
  const auto* b = test<StateRef>(L, 2);
  lua_pushboolean(L, a && b && a->state == b->state);
  return 1;
}

int identity(lua_State* L) {
  lua_pushlightuserdata(L, check<StateRef>(L, 1).state.get());
  return 1;
}

int show(lua_State* L) {
  const State& state = *check<StateRef>(L, 1).state;
  push_text(L, fmt::format("State {} {}", state.name, to_string(state.type)));
  return 1;
}

bool state_properties(lua_State* L, const std::string& key) {
  const State& state = *check<StateRef>(L, 1).state;
  if (key == "shape") return push_shape(L, state.type.dims), true;
  if (key == "dtype") return push_text(L, dtype_name(state.type.dtype)), true;
  if (key == "name") return push_text(L, state.name), true;
  if (key == "frozen") return lua_pushboolean(L, state.frozen), true;
  if (key == "trained") return lua_pushboolean(L, state.role == Role::param), true;
  return false;
}

int input(lua_State* L) {
  const std::string name = "input." + to_text(L, 1, "name");
  auto [entry, fresh] = inputs().try_emplace(name, std::make_shared<double>(lua_tonumber(L, 2)));
  if (!fresh)
    fail(ORR_INVALID, "orrery.input: '{}' exists already; keep its handle", lua_tostring(L, 1));
  push(L, Scalar{name, entry->second});
  return 1;
}

int set(lua_State* L) {
  *check<Scalar>(L, 1).value = lua_tonumber(L, 2);
  return 0;
}

bool scalar_properties(lua_State* L, const std::string& key) {
  if (key != "value") return false;
  lua_pushnumber(L, *check<Scalar>(L, 1).value);
  return true;
}

}  // namespace

std::vector<std::shared_ptr<State>> script_buffers(lua_State* L) {
  // What a program holds that is collected goes with the next collection.
  for (size_t before = SIZE_MAX; before != buffers().size();) {
    before = buffers().size();
    for (int i = 0; i < 2; ++i) lua_gc(L, LUA_GCCOLLECT);
    std::erase_if(buffers(), [](auto& each) { return each.expired(); });
  }
  std::vector<std::shared_ptr<State>> found;
  for (auto& each : buffers()) found.push_back(each.lock());
  return found;
}

Ordinals& ordinals() {
  static Ordinals made;
  return made;
}

std::map<std::string, double> scalar_values() {
  std::map<std::string, double> values;
  for (const auto& [name, value] : inputs()) values[name] = *value;
  return values;
}

std::vector<Api> state_api() {
  const std::vector<Arg> making = {{"dims", "integers"}, {"options", "options", "nil"}};
  const std::vector<Arg> options = {{"init", "any", "nil", "a number, a HostTensor, or nn.init's"},
                                    {"dtype", "dtype", "'f32'", "element type"},
                                    {"name", "string", "''", "path; modules set their own"}};
  return {
      {"orrery", "parameter", "orrery.State", "A trained tensor.", parameter, making, options},
      {"orrery", "buffer", "orrery.State", "A tensor that lives from step to step, not trained.",
       buffer, making, options},
      {"engine", "buffer", "orrery.State", "A buffer of the library's own, of one program.",
       own_buffer, making, options},
      {"State",
       "read",
       "orrery.HostTensor",
       "A copy of the current value.",
       read,
       {{"self", "State"}},
       {}},
      {"State",
       "write",
       "",
       "Replaces the value.",
       write,
       {{"self", "State"}, {"value", "any"}},
       {}},
      {"State",
       "update",
       "",
       "In a trace: the state holds `value` after the step.",
       update,
       {{"self", "State"}, {"value", "tensor"}},
       {}},
      {"State",
       "rename",
       "",
       "Sets the path.",
       set_name,
       {{"self", "State"}, {"name", "string"}},
       {}},
      {"State",
       "freeze",
       "",
       "Excludes the parameter from training (or includes it again).",
       freeze,
       {{"self", "State"}, {"frozen", "boolean", "true"}},
       {}},
      {"State",
       "identity",
       "any",
       "A key that is equal for equal states.",
       identity,
       {{"self", "State"}},
       {}},
      {"State",
       "__eq",
       "boolean",
       "Whether both are the same state.",
       same,
       {{"a", "any"}, {"b", "any"}},
       {}},
      {"State",
       "__tostring",
       "string",
       "Name and type.",
       show,
       {{"a", "any"}, {"b", "any", "nil"}},
       {}},
      {"orrery",
       "input",
       "orrery.Scalar",
       "A number for use in traced functions that may change between steps: handle:set(x).",
       input,
       {{"name", "string"}, {"value", "number"}},
       {}},
      {"Scalar",
       "set",
       "",
       "The value from the next step on.",
       set,
       {{"self", "Scalar"}, {"value", "number"}},
       {}},
  };
}

void define_state_classes(lua_State* L) {
  define_class<StateRef>(L, {"Tensor", "State"}, state_properties,
                         {"shape", "dtype", "name", "frozen", "trained"});
  lua_pop(L, 1);
  define_class<Scalar>(L, {"Tensor", "Scalar"}, scalar_properties, {"value"});
  lua_pop(L, 1);
}

}  // namespace orrery::lua
