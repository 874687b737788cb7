// SPDX-License-Identifier: Apache-2.0
//
// The class Run of scripts: compiled steps of a loss function, and their results.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "base/digest.h"
#include "base/work.h"
#include "edit/metric_name.h"
#include "edit/planner.h"
#include "lua/call.h"
#include "lua/environment.h"
#include "lua/json.h"
#include "lua/run_spec.h"
#include "lua/stopping.h"
#include "lua/strategy_script.h"
#include "run/probe.h"
#include "run/records.h"
#include "run/save_place.h"
#include "store/checkpoint.h"
#include "store/file.h"

namespace orrery::lua {
namespace {

RunRef make_run(const Table& given) {
  auto record = watch_functions(given);
  RunSpec spec = spec_of(given, record);
  const bool alone = spec.local;
  const std::string told_as = spec.told_as;
  if (!alone) ordinals().latest_step = 0;
  return {
      Run::make(std::move(spec)), record, given.with("unchanged", function_at), alone, told_as, ""};
}

BatchField whole(const HostTensor& tensor) {
  if (tensor.type.dims.empty()) fail(ORR_INVALID, "a batch field needs a first dim, the batch dim");
  const auto row =
      static_cast<int64_t>(tensor.type.bytes()) / std::max<int64_t>(tensor.type.dims[0], 1);
  Digest identity;
  identity.add(tensor.bytes->data(), tensor.bytes->size());
  return {tensor.type,
          [tensor, row](int64_t begin, int64_t end, std::byte* to) {
            std::memcpy(to, tensor.data<std::byte>() + begin * row,
                        static_cast<size_t>((end - begin) * row));
          },
          identity.number()};
}

BatchFields batch_in(const Table& given) {
  BatchFields batch;
  for (const std::string& name : sorted_keys(given.L, given.index)) {
    batch[name] = given.with(name, [](lua_State* L, int at) {
      const auto* field = test<Field>(L, at);
      return field ? field->value : whole(host_at(L, at));
    });
  }
  if (batch.empty()) fail(ORR_INVALID, "the batch has no fields; write {{x = ..., y = ...}}");
  return batch;
}

// The run, once its model has the names with which it was compiled. Throws if the model was changed
// in a way that the run would not notice.
Run& named(lua_State* L, RunRef& self) {
  self.unchanged.push();
  lua_call(L, 0, 0);
  return *self.run;
}

Run& checked(lua_State* L, RunRef& self) {
  require_main_thread(L);
  Run& run = named(L, self);
  self.record->check(L);
  return run;
}

// For scripts/orrery/search.lua.
void before_first(RunRef& self, Function first) { self.first = std::move(first); }

void call_first(lua_State* L, RunRef& self, const Table& batch) {
  if (!self.first) return;
  std::exchange(self.first, std::nullopt)->push();
  lua_pushvalue(L, batch.index);
  lua_call(L, 1, 1);
  const bool done = lua_toboolean(L, -1) != 0;
  lua_pop(L, 1);
  if (done) throw PlanDone{};
}

void use_layout(RunRef& self, const Table& layout) {
  self.run->use(strategies_in(layout), layout.integer("microbatches"));
}

// For scripts/orrery/plan.lua and search.lua.
Pushed ask_planner(lua_State* L, RunRef& self, const Table& batch, const Table& question) {
  if (!planner().answer) fail(ORR_UNAVAILABLE, "this program has no planner");
  PlanSource source = self.run->plan_source(batch_in(batch));
  if (question.has("strategies")) source.stack = strategies_in(question);
  push_json(L, planner().answer(source, plain_fields(question)));
  return {1};
}

Pushed plan_options(lua_State* L) {
  push_json(L, planner().options);
  return {1};
}

struct PlanText {
  std::string text, refusal;  // why the plan is not to be carried out (--must-fit), or ""
};

PlanText plan_text(lua_State* L, RunRef& self, const Table& batch) {
  checked(L, self);
  call_first(L, self, batch);
  push_library(L, "orrery.plan", "text");
  lua_pushvalue(L, 1);
  lua_pushvalue(L, batch.index);
  lua_call(L, 2, 2);
  PlanText made{to_text(L, -2, "the plan"), to_text(L, -1, "why it is refused")};
  lua_pop(L, 2);
  return made;
}

std::string plan(lua_State* L, RunRef& self, const Table& batch) {
  return plan_text(L, self, batch).text;
}

// Calls a function of scripts/orrery/between.lua with the run, the first argument of this call.
template <class... More>
void between(lua_State* L, const char* function, More... more) {
  push_library(L, "orrery.between", function);
  lua_pushvalue(L, 1);
  (push_value(L, more), ...);
  lua_call(L, 1 + sizeof...(more), 0);
}

void call_after(lua_State* L, RunRef& self, const Result& result) {
  if (!self.after) return;
  self.after->push();
  lua_pushvalue(L, 1);
  push(L, Result(result));
  lua_call(L, 2, 0);
}

std::string stop_place(const RunRef& self) {
  if (self.in_series) return series_path(self.saved, self.run->steps_done());
  return self.saved.empty() ? runtime_options().run_directory + "/checkpoint" : self.saved;
}

// Says on rank 0 that a job that was started again has lost the steps of its earlier starts.
void tell_beginning(const RunRef& self) {
  const int64_t start = writer_job().start;
  if (start < 2 || self.run->steps_done() > 0 || world_info().rank > 0) return;
  const std::string why = self.in_series
                              ? fmt::format("'{}' has no checkpoint yet", self.saved)
                              : "the script has loaded no checkpoint, as run:checkpoints would";
  tell_once(fmt::format("start {} of the job begins at step 0 again: {}", start, why));
}

// Before this process's first step: else a stop would be the first to find that it cannot save.
void check_stop_place(lua_State* L, RunRef& self) {
  const std::string& directory = runtime_options().run_directory;
  const bool first = !std::exchange(self.stepped, true);
  if (!first || self.alone || !self.saved.empty() || directory.empty()) return;
  orrery::check_stop_place(stop_place(self), user_line(L));
}

Result step(lua_State* L, RunRef& self, const Table& batch) {
  if (runtime_options().plan_only) {
    const PlanText made = plan_text(L, self, batch);
    std::fputs(made.text.c_str(), planner().out);
    std::fflush(planner().out);
    if (!made.refusal.empty()) fail(kDoesNotFit, "{}", made.refusal);
    throw PlanDone{};
  }
  Run& run = checked(L, self);
  call_first(L, self, batch);
  if (!self.alone) between(L, "next");
  check_stop_place(L, self);
  tell_beginning(self);
  const ProbeScope scope(std::exchange(self.probed, {}));
  Result result{run.step(batch_in(batch))};
  if (!self.alone) ordinals().latest_step = run.steps_done();
  const int signal = self.alone ? 0 : told_to_stop(run, self.saved, user_line(L));
  call_after(L, self, result);
  if (signal) between(L, "stop", signal);
  return result;
}

void probe(RunRef& self, const Table& names) {
  std::vector<std::string> list = texts_at(names.L, names.index, "name");
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
  self.probed = std::move(list);
}

// Records the numbers of an evaluation, NAME/loss and so on, unless the name is "".
Result recorded(const RunRef& self, Result result, const std::string& name) {
  if (!name.empty())
    for (const std::string& each : result.result->names())
      record_number({self.told_as, self.run->steps_done(), name + "/" + each},
                    result.result->get(each));
  return result;
}

Result evaluate(lua_State* L, RunRef& self, const Table& batch, const std::string& name) {
  Run& run = checked(L, self);
  call_first(L, self, batch);
  return recorded(self, {run.evaluate(batch_in(batch))}, name);
}

// Batches are what `next` returns, until it returns nil.
Result evaluate_all(lua_State* L, RunRef& self, const Function& next, const std::string& name) {
  Run& run = checked(L, self);
  bool first = true;
  const auto batches = [&]() -> std::optional<BatchFields> {
    const StackTop top(L);
    next.push();
    protected_call(L, 0, 1);
    if (lua_isnil(L, -1)) return std::nullopt;
    const Table batch{L, lua_gettop(L)};
    if (std::exchange(first, false)) call_first(L, self, batch);
    return batch_in(batch);
  };
  return recorded(self, {run.evaluate_all(batches)}, name);
}

void check_name(const std::string& name) { check_metric_name(name, "the name"); }

// For scripts/orrery/checkpoints.lua.
void save(lua_State* L, RunRef& self, const std::string& directory, const std::string& extra,
          bool wait, const std::string& format) {
  if (!self.in_series) {
    self.saved = directory, self.saved_format = format;
    self.saved_after = self.run->steps_done();
  }
  const Work work("saving a checkpoint", Work::of_engine);
  named(L, self).save(directory, extra, {!wait, "", {}, format});
}

// For scripts/orrery/checkpoints.lua.
void begin_series(lua_State* L, RunRef& self, const std::string& directory, Function after) {
  if (!runtime_options().plan_only) orrery::begin_series(directory, self.alone, user_line(L));
  self.saved = directory, self.in_series = true, self.after = std::move(after);
}

void save_in_series(lua_State* L, RunRef& self, const std::string& extra, const Table& remove) {
  const Work work("saving a checkpoint", Work::of_engine);
  named(L, self).save(
      series_path(self.saved, self.run->steps_done()), extra,
      {true, self.saved,
       list_at(remove.L, remove.index, [](lua_State* L, int at) { return to_text(L, at, ""); }),
       ""});
}

Pushed checkpoints(lua_State* L, const std::string& directory) {
  lua_newtable(L);
  for (const InSeries& one : checkpoints_in(directory)) {
    lua_createtable(L, 0, 3);
    set_field(L, "path", one.path);
    set_field(L, "complete", one.complete);
    set_field(L, "extra", one.extra);
    lua_rawseti(L, -2, luaL_len(L, -2) + 1);
  }
  return {1};
}

void save_to_stop(RunRef& self, bool last) {
  Run& run = *self.run;
  if (self.in_series || self.saved_after == run.steps_done()) return run.finish_save();
  if (last || !self.saved.empty())
    run.save(stop_place(self), "", {false, "", {}, self.saved_format});
}

void stop(RunRef& self, int64_t signal) {
  fail(stopped, "stopped by signal {} after step {}; run:load \"{}\" continues from there", signal,
       self.run->steps_done(), stop_place(self));
}

void finish_last(RunRef& self) {
  const Work work("saving a checkpoint", Work::of_engine);
  self.run->finish_save();
}

void finish_save(lua_State* L, RunRef& self) {
  between(L, "save");
  finish_last(self);
}

Pushed load(lua_State* L, RunRef& self, const std::string& directory) {
  between(L, "save");
  const Work work("loading a checkpoint", Work::of_engine);
  const std::string extra = named(L, self).load(directory);
  ordinals().latest_step = self.run->steps_done();
  push_value(L, self.run->steps_done());
  push_text(L, extra);
  return {2};
}

Pushed counters(lua_State* L, RunRef& self) {
  const Counters now = self.run->counters();
  lua_createtable(L, 0, 9);
  set_field(L, "steps", now.steps);
  set_field(L, "arena_bytes", now.arena_bytes);
  set_field(L, "planned_arena_bytes", now.planned_arena_bytes);
  set_field(L, "predicted_bytes_sent", now.predicted_bytes_sent);
  set_field(L, "bytes_sent", now.bytes_sent);
  set_field(L, "planned_bytes_copied", now.planned_bytes_copied);
  set_field(L, "bytes_copied", now.bytes_copied);
  set_field(L, "checkpoint_seconds", now.checkpoint_seconds);
  set_field(L, "checkpoint_bytes", now.checkpoint_bytes);
  return {1};
}

int64_t steps(RunRef& self) { return self.run->steps_done(); }

double mean(Result& self) { return self.result->get("loss"); }

Pushed get(lua_State* L, Result& self, const std::string& name) {
  StepResult& result = *self.result;
  if (auto tensor = result.tensors.find(name); tensor != result.tensors.end())
    push(L, Host{tensor->second});
  else
    lua_pushnumber(L, result.get(name));
  return {1};
}

std::vector<std::string> names(Result& self) {
  std::vector<std::string> list = self.result->names();
  for (const auto& [name, tensor] : self.result->tensors) list.push_back(name);
  return list;
}

int64_t step_number(Result& self) { return self.result->step; }

Dims shape(Field& self) { return self.value.type.dims; }
Dtype dtype(Field& self) { return {self.value.type.dtype}; }

HostTensor read_all(Field& self) { return loaded(self.value); }

}  // namespace

std::vector<Api> run_api() {
  return {
      {"engine.run(spec: table) -> Run; What orrery.compile makes, from a complete specification.",
       call<make_run>},
      {"Run.steps: integer", call<steps>},
      {"Run:step(batch: table) -> StepResult; Trains on one batch, {field = tensor}.", call<step>},
      // For scripts/orrery/evaluate.lua. `name` begins the names of what is recorded; "": nothing.
      {"engine.evaluate(run: Run, batch: table, name: string) -> StepResult; Evaluates the loss of "
       "one batch.",
       call<evaluate>},
      {"engine.evaluate_all(run: Run, next: function, name: string) -> StepResult; Evaluates the "
       "batches that next() returns as if they were one.",
       call<evaluate_all>},
      {"engine.check_metric_name(name: string); Whether a number of a run may have this name.",
       call<check_name>},
      {"Run:probe(names: list); The next step's result also has these values of the whole batch, "
       "by result:get(name): the output of a module, by its path as print(model) shows it or its "
       "kind if it is the model itself (\"NAME#2\" of its second call or result); what "
       "orrery.watch or orrery.print names; and with \"grad \" before the name the loss's "
       "derivative by such a value or by a parameter that is trained. All "
       "ranks call it.",
       call<probe>},
      {"Run:plan(batch: table) -> string; What a step on this batch will do; nothing is run.",
       call<plan>},
      {"Run:counters() -> table; What this rank has used: steps trained, arena_bytes allocated, "
       "bytes_sent and, between memory tiers, bytes_copied in those steps; and "
       "planned_arena_bytes, predicted_bytes_sent, planned_bytes_copied as the plan and the "
       "strategies said before; checkpoint_seconds that the script has waited for checkpoints, and "
       "checkpoint_bytes of the memory in which the last one was copied.",
       call<counters>},
      {"engine.save(run: Run, directory: string, extra: string, wait: boolean, format: string); "
       "Writes a checkpoint, or begins to.",
       call<save>},
      {"Run:finish_save(); Waits until the last checkpoint is complete, and raises its error.",
       call<finish_save>},
      {"engine.before_first(run: Run, call: function); Calls it with the first batch before its "
       "use; the script ends if it returns true.",
       call<before_first>},
      {"engine.plan(run: Run, batch: table, question: table) -> any; What the planner answers "
       "about a step (core/plan/planner.h), of question.strategies if they are given.",
       call<ask_planner>},
      {"engine.plan_options() -> table; Those of the command line.", call<plan_options>},
      {"engine.use_layout(run: Run, layout: table); The run's stack and microbatches from now on.",
       call<use_layout>},
      {"engine.begin_series(run: Run, directory: string, after: function); Calls after(run, "
       "result) after each step; the run has its checkpoints in the directory, which is made and "
       "locked, from now on.",
       call<begin_series>},
      {"engine.save_in_series(run: Run, extra: string, remove: table); Saves in the directory "
       "of begin_series, while steps go on; when that is complete, removes others.",
       call<save_in_series>},
      {"engine.finish_save(run: Run); Waits for the save that has begun last.", call<finish_last>},
      {"engine.save_to_stop(run: Run, last: boolean); Saves where the script does, unless it has "
       "already; the last one in the run's directory if it does not.",
       call<save_to_stop>},
      {"engine.stop(run: Run, signal: integer); Ends the script.", call<stop>},
      {"engine.checkpoints(directory: string) -> table[]; Those in a directory of several, by "
       "step: path, complete, extra.",
       call<checkpoints>},
      {"Run:load(directory: string) -> integer, string; Continues from a checkpoint, in a "
       "directory "
       "or at an address; the steps done and `extra`.",
       call<load>},
      {"StepResult.step: integer", call<step_number>},
      {"StepResult:mean() -> number; The loss; waits for the step.", call<mean>},
      {"StepResult:get(name: string) -> number | orrery.HostTensor; An output by name: 'loss', "
       "'grad_norm', the loss function's own.",
       call<get>},
      {"StepResult:names() -> string[]; The names that get() knows.", call<names>},
      {"Field.shape: integer[]", call<shape>},
      {"Field.dtype: orrery.DType", call<dtype>},
      {"Field:read() -> HostTensor; Loads the whole field.", call<read_all>},
  };
}

}  // namespace orrery::lua
