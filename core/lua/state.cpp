// SPDX-License-Identifier: Apache-2.0
//
// Parameters and other states in Lua, and run-time numbers (orrery.input).
#include <map>
#include <set>
#include <vector>

#include "edit/planner.h"
#include "lua/call.h"
#include "program/elements.h"
#include "run/counts.h"
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
    initial.a = exact_number(L, index);
    if (!fits(initial.a, type.dtype))
      fail(ORR_INVALID, "initial value {} does not fit into {}", initial.a, dtype_name(type.dtype));
    return initial;
  }
  if (!lua_istable(L, index)) {
    fail(ORR_INVALID, "initial value is {}, expected a number, a HostTensor or one of nn.init",
         describe(L, index));
  }
  const Table how{L, index};
  const std::string kind = how.text("kind");
  initial.kind = kind == "uniform"  ? Initial::uniform
                 : kind == "normal" ? Initial::normal
                                    : Initial::constant;
  initial.a = how.number("a");
  initial.b = how.number("b");
  if (initial.is_random()) initial.ordinal = ++ordinals().drawn;
  initial.seed = runtime_options().seed;
  return initial;
}

template <Role role>
StateRef make_state(lua_State* L, Index dims, const Table& options) {
  auto state = std::make_shared<State>();
  state->type = {ORR_F32, to_integers(L, dims, "dims")};
  for (int64_t dim : state->type.dims) {
    if (dim < 1) fail(ORR_INVALID, "dims {}: every dim is at least 1", to_string(state->type.dims));
  }
  state->type.dtype = options.with("dtype", to_dtype);
  if (role == Role::param && !is_real(state->type.dtype))
    fail(ORR_INVALID, "a parameter is trained, which {} cannot be: make it an orrery.buffer",
         dtype_name(state->type.dtype));
  state->name = options.text("name");
  if (state->name.empty()) state->name = fmt::format("unnamed.{}", ++ordinals().unnamed);
  options.with("init", [&](lua_State*, int at) {
    state->initial = initial_at(L, at, state->type);
    return 0;
  });
  state->role = role;
  state->site.line = user_line(L);
  return {state};
}

std::vector<std::weak_ptr<State>>& states() {
  static std::vector<std::weak_ptr<State>> made;
  return made;
}

// The parameters that programs of the script have given new values by State:update.
std::set<std::weak_ptr<const State>, std::owner_less<>>& updated_parameters() {
  static std::set<std::weak_ptr<const State>, std::owner_less<>> all;
  return all;
}

template <Role role>
StateRef make_known_state(lua_State* L, Index dims, const Table& options) {
  StateRef made = make_state<role>(L, dims, options);
  states().push_back(made.state);
  return made;
}

HostTensor read_now(StateRef& self) {
  materialize({self.state});
  return read_state(*self.state);
}

// A traced function runs once for many steps.
void refuse_in_trace(const char* call, const char* remedy) {
  if (Trace::current())
    fail(ORR_INVALID,
         "{} in a traced function would happen when that is traced, not in every step: {}", call,
         remedy);
}

void write(lua_State* L, StateRef& self, Index given) {
  refuse_in_trace("State:write", "use State:update");
  const auto& state = self.state;
  const HostTensor value =
      lua_istable(L, given) ? host_from_table(L, given, state->type.dtype) : host_at(L, given);
  if (!(value.type == state->type)) {
    fail(ORR_INVALID, "write: {} is {}, the value is {}", state->name, to_string(state->type),
         to_string(value.type));
  }
  materialize({state});
  give_state(state, value, user_line(L));
}

// What a program says that a state will hold after the step; kNone: nothing.
ValueId next_of(const Program& program, ValueId state) {
  for (const auto& [known, next] : program.updates())
    if (known == state) return next;
  return kNone;
}

// Whether a value is computed from another one, or is that.
bool is_made_of(const Program& program, ValueId value, ValueId other) {
  std::vector<ValueId> open = {value};
  for (std::set<ValueId> seen; !open.empty();) {
    const ValueId v = open.back();
    open.pop_back();
    if (v == other) return true;
    const OpId maker = program.value(v).producer;
    if (maker == kNone || !seen.insert(v).second) continue;
    const Op& op = program.ops()[static_cast<size_t>(maker)];
    open.insert(open.end(), op.in.begin(), op.in.end());
  }
  return false;
}

// A second update replaces the first one, so it must be made of that one's value.
void refuse_lost_update(const Program& program, const State& state, ValueId first, ValueId second) {
  const OpId maker = program.value(first).producer;
  ValueId given = first;  // before Program::update has made a total of it
  if (maker != kNone && program.ops()[static_cast<size_t>(maker)].kind == "total")
    given = program.ops()[static_cast<size_t>(maker)].in[0];
  if (is_made_of(program, second, given)) return;
  fail(ORR_INVALID,
       "'{}', made at {}, is updated twice in this step, and the second value is not made of the "
       "first, which would be lost: make it of x:updated(), or update it once",
       state.name, state.site.line);
}

void update(Program& program, StateRef& self, ValueId value) {
  if (planner().options.contains("help")) throw PlanDone{};  // the script would begin to train
  const ValueId state = program.state_value(self.state);
  if (const ValueId first = next_of(program, state); first != kNone)
    refuse_lost_update(program, *self.state, first, value);
  program.update(state, value);
  if (self.state->role == Role::param) updated_parameters().insert(self.state);
}

ValueId updated(Program& program, StateRef& self) {
  const ValueId state = program.state_value(self.state);
  const ValueId next = next_of(program, state);
  return next == kNone ? state : next;
}

void set_name(StateRef& self, const std::string& name) { self.state->name = name; }

void freeze(StateRef& self, bool frozen) { self.state->frozen = frozen; }

void count_updates(StateRef& self, StateRef& of) { note_count(self.state, of.state); }

bool same(lua_State* L, Index first, Index second) {
  const auto* a = test<StateRef>(L, first);
  const auto* b = test<StateRef>(L, second);
  return a && b && a->state == b->state;
}

Pushed identity(lua_State* L, StateRef& self) {
  lua_pushlightuserdata(L, self.state.get());
  return {1};
}

std::string show(StateRef& self) {
  return fmt::format("State {} {}", self.state->name, to_string(self.state->type));
}

Dims shape(StateRef& self) { return self.state->type.dims; }
Dtype dtype(StateRef& self) { return {self.state->type.dtype}; }
std::string name(StateRef& self) { return self.state->name; }
bool frozen(StateRef& self) { return self.state->frozen; }
bool trained(StateRef& self) { return self.state->role == Role::param; }

Scalar input(const std::string& given, double value) {
  const std::string name = "input." + given;
  auto [entry, fresh] = inputs().try_emplace(name, std::make_shared<double>(value));
  if (!fresh) fail(ORR_INVALID, "orrery.input: '{}' exists already; keep its handle", given);
  return {name, entry->second};
}

void set(Scalar& self, double value) {
  refuse_in_trace("Scalar:set", "call it before the step");
  *self.value = value;
}
double value(Scalar& self) { return *self.value; }

}  // namespace

std::vector<std::shared_ptr<State>> script_states(lua_State* L) {
  // A collected program releases its states, which only the next collection frees: collect until
  // nothing changes.
  for (size_t before = SIZE_MAX; before != states().size();) {
    before = states().size();
    for (int i = 0; i < 2; ++i) lua_gc(L, LUA_GCCOLLECT);
    std::erase_if(states(), [](auto& each) { return each.expired(); });
  }
  std::vector<std::shared_ptr<State>> found;
  for (auto& each : states()) found.push_back(each.lock());
  return found;
}

bool is_kept_by_script(const std::shared_ptr<State>& state) {
  return state->role == Role::state || updated_parameters().count(state);
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
  const auto making = [](const std::string& name, const std::string& doc, Body body) -> Api {
    return {name + "(dims: integers, options?) -> State; " + doc +
                " @option init?: any; a number, a HostTensor, or nn.init's @option dtype: dtype = "
                "'f32'; element type @option name: string = ''; path; modules set their own",
            body};
  };
  return {
      making("orrery.parameter", "A trained tensor.", call<make_known_state<Role::param>>),
      making("orrery.buffer", "A tensor that lives from step to step, not trained.",
             call<make_known_state<Role::state>>),
      making("engine.buffer", "A buffer of the library's own, of one program.",
             call<make_state<Role::state>>),
      {"engine.counts(count: State, of: State); Says that `count` is how often `of` was updated, "
       "which a checkpoint that has only `of` does not tell: its step it is then.",
       call<count_updates>},
      {"State.shape: integer[]", call<shape>},
      {"State.dtype: orrery.DType", call<dtype>},
      {"State.name: string", call<name>},
      {"State.frozen: boolean", call<frozen>},
      {"State.trained: boolean", call<trained>},
      {"State:read() -> HostTensor; A copy of the current value.", call<read_now>},
      {"State:write(value: any); Replaces the value.", call<write>},
      {"State:update(value: Tensor); In a trace: the state holds `value` after the step.",
       call<update>},
      {"State:updated() -> Tensor; In a trace: what the state will hold after the step, as far as "
       "an update has said so; else its value.",
       call<updated>},
      {"State:rename(name: string); Sets the path.", call<set_name>},
      {"State:freeze(frozen: boolean = true); Excludes the parameter from training (or includes it "
       "again).",
       call<freeze>},
      {"State:identity() -> any; A key that is equal for equal states.", call<identity>},
      {"State.__eq(a: any, b: any) -> boolean; Whether both are the same state.", call<same>},
      {"State.__tostring(a: any, b?: any) -> string; Name and type.", call<show>},
      {"Scalar.value: number", call<value>},
      {"orrery.input(name: string, value: number) -> Scalar; A number for use in traced functions "
       "that may change between steps: handle:set(x).",
       call<input>},
      {"Scalar:set(value: number); The value from the next step on.", call<set>},
  };
}

}  // namespace orrery::lua
