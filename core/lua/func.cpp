// SPDX-License-Identifier: Apache-2.0
//
// Compiled functions of tensors in Lua (orrery.func), and the run-time numbers that traces may
// read.
#include "lua/api.h"
#include "lua/objects.h"

namespace orrery::lua {
namespace {

std::vector<ValueId> results_of(const Outputs& outputs) {
  std::vector<ValueId> results;
  for (const auto& [name, value] : outputs) results.push_back(value);
  return results;
}

// Traces `body` over the inputs; results are named "1", "2", ...
Outputs trace_body(const Function& body, Program& program, const std::vector<ValueId>& inputs) {
  lua_State* L = body.state();
  const int top = lua_gettop(L);
  Trace trace(L, program);
  luaL_checkstack(L, static_cast<int>(inputs.size()) + 20, "trace");
  body.push();
  for (ValueId input : inputs) push_tensor(L, input);
  protected_call(L, static_cast<int>(inputs.size()), LUA_MULTRET);
  Outputs outputs;
  for (int i = top + 1; i <= lua_gettop(L); ++i) {
    outputs.emplace_back(std::to_string(i - top), value_at(L, i));
  }
  lua_settop(L, top);
  refuse_unused_conditions(program, 0, results_of(outputs));
  return outputs;
}

// Traces the function again, for inputs of the same shapes.
TraceRecord::Again again(const Function& body, const Program& program,
                         const std::vector<ValueId>& inputs) {
  std::vector<Type> types;
  for (ValueId input : inputs) types.push_back(program.type(input));
  return [body, types, site = program.site(), stream = program.stream()](Program& anew) {
    anew.set_site(site);
    anew.set_stream(stream);
    std::vector<ValueId> values;
    for (const Type& type : types)
      values.push_back(anew.input(std::to_string(values.size()), type));
    return results_of(trace_body(body, anew, values));
  };
}

int func(lua_State* L) {
  auto record = std::make_shared<TraceRecord>();
  const bool watched = record->watch(L, 1);
  auto body = [function = Function(L, 1), record, watched](Program& program,
                                                           const std::vector<ValueId>& inputs) {
    Outputs outputs = trace_body(function, program, inputs);
    if (watched)
      record->keep(function.state(), program, results_of(outputs),
                   again(function, program, inputs));
    return outputs;
  };
  const std::string stream = fmt::format("func.{}/", ++ordinals().functions);
  push(L, Compiled{orrery::Function::make(body, user_line(L), stream), record});
  return 1;
}

// self:run({inputs}, {scalars}) -> HostTensors
int call(lua_State* L) {
  require_main_thread(L);
  const auto& self = check<Compiled>(L, 1);
  self.record->check(L);
  std::vector<HostTensor> inputs(lua_rawlen(L, 2));
  for (size_t i = 0; i < inputs.size(); ++i) {
    lua_rawgeti(L, 2, static_cast<lua_Integer>(i) + 1);
    inputs[i] = host_at(L, lua_gettop(L));
    lua_pop(L, 1);
  }
  std::map<std::string, double> scalars = scalar_values();
  for (const std::string& name : sorted_keys(L, 3)) scalars[name] = option_real(L, 3, name.c_str());
  const std::vector<HostTensor> results = self.function->call(inputs, scalars);
  luaL_checkstack(L, static_cast<int>(results.size()), "results");
  for (const HostTensor& result : results) push(L, Host{result});
  return static_cast<int>(results.size());
}

int scalar(lua_State* L) {
  Program& program = program_here(L);
  push_tensor(L, program.scalar_input(to_text(L, 1, "name"), to_dtype(L, 2)));
  return 1;
}

}  // namespace

void require_main_thread(lua_State* L) {
  const bool main = lua_pushthread(L) == 1;
  lua_pop(L, 1);
  if (!main) fail(ORR_INVALID, "compiled functions cannot be called inside a coroutine");
}

std::vector<Api> func_api() {
  return {
      {"engine",
       "func",
       "orrery.Program",
       "Traces a function of tensors, once per input shapes.",
       func,
       {{"body", "function"}},
       {}},
      {"engine",
       "scalar",
       "orrery.Tensor",
       "In a trace: the run-time number of this name.",
       scalar,
       {{"name", "string"}, {"dtype", "dtype", "'f32'"}},
       {}},
      {"Program",
       "run",
       "orrery.HostTensor ...",
       "Computes the results for these inputs.",
       call,
       {{"self", "Program"}, {"inputs", "table"}, {"scalars", "table", "{}"}},
       {}},
  };
}

void define_func_class(lua_State* L) {
  define_class<Compiled>(L, {"Program"});
  lua_pop(L, 1);
}

}  // namespace orrery::lua
