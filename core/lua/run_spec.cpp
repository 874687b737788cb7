// SPDX-License-Identifier: Apache-2.0
#include "lua/run_spec.h"

#include "base/text.h"
#include "lua/api.h"
#include "lua/environment.h"
#include "lua/objects.h"
#include "lua/stack.h"
#include "lua/traced.h"

namespace orrery::lua {
namespace {

bool has_field(lua_State* L, int index, const char* name) {
  const bool there = lua_getfield(L, index, name) != LUA_TNIL;
  lua_pop(L, 1);
  return there;
}

std::vector<std::shared_ptr<State>> states_field(lua_State* L, int index, const char* name) {
  lua_getfield(L, index, name);
  std::vector<std::shared_ptr<State>> states = states_at(L, -1);
  lua_pop(L, 1);
  return states;
}

// {name = tensor} at `index`, in the order of names.
Outputs outputs_at(lua_State* L, int index) {
  Outputs outputs;
  if (lua_isnil(L, index)) return outputs;
  if (!lua_istable(L, index)) {
    fail(ORR_INVALID, "the loss function's second result is {}, expected {{name = tensor}}",
         describe(L, index));
  }
  for (const std::string& name : sorted_keys(L, index)) {
    lua_getfield(L, index, name.c_str());
    outputs.emplace_back(name, value_at(L, lua_gettop(L)));
    lua_pop(L, 1);
  }
  return outputs;
}

using Traced = std::pair<ValueId, Outputs>;

std::vector<ValueId> results_of(const Traced& traced) {
  std::vector<ValueId> results = {traced.first};
  for (const auto& [name, value] : traced.second) results.push_back(value);
  return results;
}

int no_field(lua_State* L) {
  return guard(L, [](lua_State* state) -> int {
    const std::vector<std::string> known = sorted_keys(state, 1);
    const std::string name = lua_isstring(state, 2) ? lua_tostring(state, 2) : describe(state, 2);
    fail(ORR_INVALID, "the batch has no '{}'{}; it has {}", name, did_you_mean(name, known),
         join(known, ", "));
  });
}

// The batch as a loss function sees it: a table of tensors, in which other fields are errors.
void push_batch(lua_State* L, const Fields& fields) {
  lua_createtable(L, 0, static_cast<int>(fields.size()));
  for (const auto& [name, value] : fields) {
    push_tensor(L, value);
    lua_setfield(L, -2, name.c_str());
  }
  if (luaL_newmetatable(L, "batch")) {
    lua_pushcfunction(L, no_field);
    lua_setfield(L, -2, "__index");
    lua_pushnil(L);
    lua_setfield(L, -2, "__name");
  }
  lua_setmetatable(L, -2);
}

Traced trace_loss(const Function& loss, Program& program, const Fields& fields) {
  lua_State* L = loss.state();
  const int top = lua_gettop(L);
  Trace trace(L, program);
  luaL_checkstack(L, 20, "trace");
  loss.push();
  push_batch(L, fields);
  protected_call(L, 1, 2);
  if (!is_tensor(L, top + 1)) {
    fail(ORR_INVALID, "the loss function returned {}, expected a tensor", describe(L, top + 1));
  }
  const ValueId value = value_at(L, top + 1);
  Traced traced{value, outputs_at(L, top + 2)};
  lua_settop(L, top);
  refuse_unused_conditions(program, 0, results_of(traced));
  return traced;
}

// Traces the loss again, for batches of the same shapes.
TraceRecord::Again again(const Function& loss, const Program& program, const Fields& fields) {
  std::map<std::string, Type> types;
  for (const auto& [name, value] : fields) types[name] = program.type(value);
  return [loss, types, site = program.site(), stream = program.stream()](Program& anew) {
    anew.set_site(site);
    anew.set_stream(stream);
    Fields inputs;
    for (const auto& [name, type] : types) inputs[name] = anew.batch_input(name, type);
    return results_of(trace_loss(loss, anew, inputs));
  };
}

ValueId trace_update(const Function& update, Program& program, const std::shared_ptr<State>& param,
                     ValueId value, ValueId gradient) {
  lua_State* L = update.state();
  const size_t first = program.ops().size();
  Trace trace(L, program);
  luaL_checkstack(L, 20, "trace");
  update.push();
  push(L, StateRef{param});
  push_tensor(L, value);
  push_tensor(L, gradient);
  protected_call(L, 3, 1);
  const ValueId result = value_at(L, lua_gettop(L));
  lua_pop(L, 1);
  refuse_unused_conditions(program, first, {result});
  return result;
}

// The numbers that `scalars(step)` returns, and those of orrery.input.
std::map<std::string, double> step_scalars(const Function& scalars, int64_t step) {
  lua_State* L = scalars.state();
  std::map<std::string, double> values = scalar_values();
  scalars.push();
  lua_pushinteger(L, step);
  protected_call(L, 1, 1);
  for (const std::string& name : sorted_keys(L, -1)) {
    values[name] = option_real(L, lua_gettop(L), name.c_str());
  }
  lua_pop(L, 1);
  return values;
}

}  // namespace

Function function_field(lua_State* L, int index, const char* name) {
  lua_getfield(L, index, name);
  Function function(L, -1);
  lua_pop(L, 1);
  return function;
}

std::shared_ptr<TraceRecord> watch_functions(lua_State* L, int index) {
  auto record = std::make_shared<TraceRecord>();
  lua_getfield(L, index, "loss");
  record->watch(L, -1);
  lua_getfield(L, index, "watched");
  for (lua_Integer i = 1; lua_rawgeti(L, -1, i) != LUA_TNIL; ++i) {
    record->watch(L, -1);
    lua_pop(L, 1);
  }
  lua_pop(L, 3);
  return record;
}

RunSpec spec_at(lua_State* L, int index, const std::shared_ptr<TraceRecord>& record) {
  RunSpec spec;
  spec.loss = [loss = function_field(L, index, "loss"), record,
               model = states_field(L, index, "states")](Program& program, const Fields& fields) {
    Traced traced = trace_loss(loss, program, fields);
    if (tracing_training()) refuse_untrained(program, traced.first, model);
    record->keep(loss.state(), program, results_of(traced), again(loss, program, fields));
    return traced;
  };
  spec.params = states_field(L, index, "params");
  spec.states = states_field(L, index, "states");
  spec.gradients = states_field(L, index, "gradients");
  spec.buffers = [L] { return script_buffers(L); };
  if (has_field(L, index, "update")) {
    spec.update = [update = function_field(L, index, "update")](Program& program,
                                                                const std::shared_ptr<State>& param,
                                                                ValueId value, ValueId gradient) {
      return trace_update(update, program, param, value, gradient);
    };
  }
  spec.scalars = [scalars = function_field(L, index, "scalars")](int64_t step) {
    return step_scalars(scalars, step);
  };
  spec.microbatches = option_int(L, index, "microbatches");
  spec.clip_norm = option_real(L, index, "clip");
  spec.local = option_bool(L, index, "alone");
  spec.fast = option_bool(L, index, "fast");
  spec.strategies = strategies_at(L, index);
  // Each kind has its own count: what one rank makes for itself does not shift the others'.
  spec.stream = spec.local ? fmt::format("alone.{}/", ++ordinals().runs_alone)
                           : fmt::format("run.{}/", ++ordinals().runs);
  spec.line = user_line(L);
  return spec;
}

}  // namespace orrery::lua
