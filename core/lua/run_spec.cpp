// SPDX-License-Identifier: Apache-2.0
#include "lua/run_spec.h"

#include <algorithm>
#include <cctype>

#include "base/text.h"
#include "edit/metric_name.h"
#include "lua/environment.h"
#include "lua/objects.h"
#include "lua/strategy_script.h"
#include "lua/traced.h"
#include "run/probe.h"

namespace orrery::lua {
namespace {

// The tensors of the table {name = tensor} at `index`, sorted by name.
Outputs outputs_at(lua_State* L, int index) {
  Outputs outputs;
  if (lua_isnil(L, index)) return outputs;
  if (!lua_istable(L, index)) {
    fail(ORR_INVALID, "the loss function's second result is {}, expected {{name = tensor}}",
         describe(L, index));
  }
  for (const std::string& name : sorted_keys(L, index)) {
    check_metric_name(name, "the second result");
    if (name == "skipped_steps")
      fail(
          ORR_INVALID,
          "the second result '{}' is how strategies count steps that changed nothing: take another "
          "name",
          name);
    outputs.emplace_back(name, Table{L, index}.with(name, value_at));
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

// Pushes the batch for a loss function: a table of tensors, in which reading any other field is an
// error.
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
  const auto give = [&](lua_State* L) { push_batch(L, fields); };
  return call_traced(loss, program, 2, give, [&](lua_State* L, int first) {
    if (!is_tensor(L, first))
      fail(ORR_INVALID, "the loss function returned {}, expected a tensor", describe(L, first));
    const ValueId value = value_at(L, first);
    Traced traced{value, outputs_at(L, first + 1)};
    refuse_unused_conditions(L, program, 0, results_of(traced));
    return traced;
  });
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
  const size_t begin = program.ops().size();
  const auto give = [&](lua_State* L) {
    push(L, StateRef{param});
    push_tensor(L, value);
    push_tensor(L, gradient);
  };
  return call_traced(update, program, 1, give, [&](lua_State* L, int first) {
    const ValueId result = value_at(L, first);
    refuse_unused_conditions(L, program, begin, {result});
    return result;
  });
}

// The numbers that `scalars(step)` returns, and those of orrery.input.
std::map<std::string, double> step_scalars(const Function& scalars, int64_t step) {
  lua_State* L = scalars.state();
  std::map<std::string, double> values = scalar_values();
  scalars.push();
  lua_pushinteger(L, step);
  protected_call(L, 1, 1);
  const Table made{L, lua_gettop(L)};
  for (const std::string& name : sorted_keys(L, made.index)) values[name] = made.number(name);
  lua_pop(L, 1);
  return values;
}

// Whether it names a directory inside the run's, and nothing else that is there.
bool is_run_name(const std::string& name) {
  const auto is_good = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-';
  };
  const bool counted = name.starts_with("run-") || name.starts_with("func-");
  return name.size() <= 64 && std::all_of(name.begin(), name.end(), is_good) && name[0] != '-' &&
         !counted && name != "images" && name != "checkpoint";
}

// What observers call a run by the name that the script gives it, or by its number.
std::string told_as(const std::string& name, const std::string& line) {
  const int64_t number = ++ordinals().told_runs;
  if (name.empty()) return number > 1 ? fmt::format("run-{}", number) : "";
  if (!is_run_name(name))
    fail(ORR_INVALID,
         "compile: the name '{}' cannot be that of a run and its directory: take at most 64 "
         "letters, "
         "digits, '_' and '-', and not run-..., func-..., images or checkpoint",
         printable(name));
  const auto [at, fresh] = ordinals().run_names.try_emplace(name, line);
  if (!fresh)
    fail(ORR_INVALID, "compile: the run of {} has the name '{}' already: give this one another",
         at->second, name);
  return name;
}

}  // namespace

std::shared_ptr<TraceRecord> watch_functions(const Table& given) {
  auto record = std::make_shared<TraceRecord>();
  const auto watch = [&](lua_State* L, int at) { return record->watch(L, at); };
  given.with("loss", watch);
  given.with("watched", [&](lua_State* L, int at) { return list_at(L, at, watch); });
  return record;
}

RunSpec spec_of(const Table& given, const std::shared_ptr<TraceRecord>& record) {
  lua_State* L = given.L;
  RunSpec spec;
  spec.params = given.with("params", states_at);
  spec.states = given.with("states", states_at);
  spec.gradients = given.with("gradients", states_at);
  spec.loss = [loss = given.with("loss", function_at), record, model = spec.states](
                  Program& program, const Fields& fields) {
    const std::string random = random_state(loss.state());
    Traced traced = trace_loss(loss, program, fields);
    if (tracing_training()) refuse_untrained(program, traced.first, model);
    if (probed().empty())
      record->keep(loss.state(), program, results_of(traced), again(loss, program, fields), random);
    return traced;
  };
  spec.script_states = [L] { return script_states(L); };
  spec.kept_by_script = is_kept_by_script;
  if (given.has("update")) {
    spec.update = [update = given.with("update", function_at)](Program& program,
                                                               const std::shared_ptr<State>& param,
                                                               ValueId value, ValueId gradient) {
      return trace_update(update, program, param, value, gradient);
    };
  }
  spec.scalars = [scalars = given.with("scalars", function_at)](int64_t step) {
    return step_scalars(scalars, step);
  };
  spec.microbatches = given.integer("microbatches");
  spec.clips = given.with("clips", [](lua_State* state, int at) {
    return list_at(state, at, [](lua_State* s, int index) {
      const Table clip{s, index};
      return ClippedNorm{clip.number("limit"), clip.with("params", states_at)};
    });
  });
  spec.grad_norm = given.flag("grad_norm");
  spec.local = given.flag("alone");
  spec.fast = given.flag("fast");
  spec.fast_sums = given.flag("fast_sums");
  spec.strategies = strategies_in(given);
  // Runs of one rank alone are counted by themselves, so that they do not change the streams of
  // runs that all ranks make.
  spec.stream = spec.local ? fmt::format("alone.{}/", ++ordinals().runs_alone)
                           : fmt::format("run.{}/", ++ordinals().runs);
  spec.line = user_line(L);
  if (!spec.local) spec.told_as = told_as(given.text("name"), spec.line);
  return spec;
}

}  // namespace orrery::lua
