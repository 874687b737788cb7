// SPDX-License-Identifier: Apache-2.0
//
// Compiled functions of tensors in Lua (orrery.func), and the run-time numbers that traces may
// read.
#include "lua/call.h"
#include "lua/captured.h"
#include "lua/environment.h"
#include "lua/traced_ops.h"

namespace orrery::lua {
namespace {

std::vector<ValueId> results_of(const Outputs& outputs) {
  std::vector<ValueId> results;
  for (const auto& [name, value] : outputs) results.push_back(value);
  return results;
}

// Traces `body` with these inputs; its results are named "1", "2", ...
Outputs trace_body(const Function& body, Program& program, const std::vector<ValueId>& inputs) {
  const auto take = [&](lua_State* L, int first) {
    Outputs outputs;
    for (int i = first; i <= lua_gettop(L); ++i)
      outputs.emplace_back(std::to_string(i - first + 1), value_at(L, i));
    refuse_unused_conditions(L, program, 0, results_of(outputs));
    return outputs;
  };
  return call_traced(
      body, program, LUA_MULTRET, [&](lua_State* L) { give(L, inputs); }, take);
}

// Traces the function again, for inputs of the same shapes.
TraceRecord::Again again(const Function& body, const Program& program,
                         const std::vector<ValueId>& inputs) {
  std::vector<Value> given;
  for (ValueId input : inputs) given.push_back(program.value(input));
  return [body, given, site = program.site(), stream = program.stream()](Program& anew) {
    anew.set_site(site);
    anew.set_stream(stream);
    std::vector<ValueId> values;
    for (const Value& v : given)
      values.push_back(v.role == Role::scalar ? anew.scalar_input(v.name, v.type.dtype)
                                              : anew.input(v.name, v.type));
    return results_of(trace_body(body, anew, values));
  };
}

// `stream`: of the random numbers, for what the library makes by itself; "": the next of the
// script's functions, which are counted.
Compiled func(lua_State* L, Index body, const std::string& stream) {
  auto record = std::make_shared<TraceRecord>();
  const bool watched = record->watch(L, body);
  auto trace = [function = Function(L, body), record, watched](Program& program,
                                                               const std::vector<ValueId>& inputs) {
    const std::string random = random_state(function.state());
    Outputs outputs = trace_body(function, program, inputs);
    if (watched)
      record->keep(function.state(), program, results_of(outputs), again(function, program, inputs),
                   random);
    return outputs;
  };
  const auto name = [&](int64_t& count) {
    return stream.empty() ? std::to_string(++count) : stream;
  };
  return {orrery::Function::make(trace, user_line(L),
                                 fmt::format("func.{}/", name(ordinals().functions)),
                                 fmt::format("func-{}", name(ordinals().told_functions))),
          record};
}

// A hash of the values that these functions of the script close over.
int64_t captured(lua_State* L, Index functions) {
  Captured all;
  list_at(L, functions, [&](lua_State* state, int at) { return all.watch(state, at); });
  all.take(L);
  return static_cast<int64_t>(all.hash());
}

bool tracing() { return Trace::current() != nullptr; }

Argument argument_at(lua_State* L, int index) {
  const bool real = lua_type(L, index) == LUA_TNUMBER && !lua_isinteger(L, index);
  if (real) return lua_tonumber(L, index);
  return host_at(L, index);
}

Pushed run(lua_State* L, Compiled& self, Index inputs, const Table& given) {
  require_main_thread(L);
  self.record->check(L);
  const std::vector<Argument> arguments = list_at(L, inputs, argument_at);
  std::map<std::string, double> scalars = scalar_values();
  for (const std::string& name : sorted_keys(L, given.index)) scalars[name] = given.number(name);
  const std::vector<HostTensor> results = self.function->call(arguments, scalars);
  luaL_checkstack(L, static_cast<int>(results.size()), "results");
  for (const HostTensor& result : results) give(L, result);
  return {static_cast<int>(results.size())};
}

ValueId scalar(Program& p, const std::string& name, Dtype dtype) {
  return p.scalar_input(name, dtype);
}

}  // namespace

void require_main_thread(lua_State* L) {
  const bool main = lua_pushthread(L) == 1;
  lua_pop(L, 1);
  if (!main) fail(ORR_INVALID, "compiled functions cannot be called inside a coroutine");
}

std::vector<Api> func_api() {
  return {
      {"engine.func(body: function, stream: string = '') -> Program; Traces a function of tensors, "
       "once per input shapes. `stream`: of its random numbers; '': the next of the script's.",
       call<func>},
      {"engine.traced(body: function, inputs: table) -> table; What a function is traced into for "
       "HostTensors of these types: values by their numbers, and ops in their order.",
       call<traced>},
      {"engine.captured(functions: table) -> integer; A hash of the values that functions of the "
       "script close over.",
       call<captured>},
      {"engine.tracing() -> boolean; Whether a function is being traced.", call<tracing>},
      {"engine.scalar(name: string, dtype: dtype = 'f32') -> Tensor; In a trace: the run-time "
       "number of this name.",
       call<scalar>},
      {"Program:run(inputs: table, scalars: table = {}) -> orrery.HostTensor ...; Computes the "
       "results for these inputs.",
       call<run>},
  };
}

}  // namespace orrery::lua
