// SPDX-License-Identifier: Apache-2.0
//
// Compiled steps in Lua: a Run from a loss function, its steps and their results.
#include <cstdio>
#include <cstring>

#include "base/text.h"
#include "base/work.h"
#include "lua/api.h"
#include "lua/environment.h"
#include "lua/objects.h"
#include "lua/run_spec.h"
#include "lua/stack.h"
#include "lua/stopping.h"
#include "lua/traced.h"
#include "plan/text.h"
#include "store/digest.h"

namespace orrery::lua {
namespace {

int make_run(lua_State* L) {
  auto record = watch_functions(L, 1);
  refuse_unread_arguments();
  RunSpec spec = spec_at(L, 1, record);
  const bool alone = spec.local;
  push(L, RunRef{Run::make(std::move(spec)), record, function_field(L, 1, "unchanged"), alone, ""});
  return 1;
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

BatchFields batch_at(lua_State* L, int index) {
  BatchFields batch;
  for (const std::string& name : sorted_keys(L, index)) {
    lua_getfield(L, index, name.c_str());
    const auto* field = test<Field>(L, -1);
    batch[name] = field ? field->value : whole(host_at(L, lua_gettop(L)));
    lua_pop(L, 1);
  }
  if (batch.empty()) fail(ORR_INVALID, "the batch has no fields; write {{x = ..., y = ...}}");
  return batch;
}

RunRef& run_here(lua_State* L) {
  require_main_thread(L);
  auto& self = check<RunRef>(L, 1);
  self.unchanged.push();
  lua_call(L, 0, 0);
  self.record->check(L);
  return self;
}

int step(lua_State* L) {
  RunRef& self = run_here(L);
  if (runtime_options().plan_only) {
    std::fputs(plan_text(self.run->plan_source(batch_at(L, 2))).c_str(), stdout);
    throw PlanDone{};
  }
  push(L, Result{self.run->step(batch_at(L, 2))});
  if (!self.alone) stop_if_told(*self.run, self.saved, user_line(L));
  return 1;
}

int evaluate(lua_State* L) {
  push(L, Result{run_here(L).run->evaluate(batch_at(L, 2))});
  return 1;
}

int plan(lua_State* L) {
  push_text(L, plan_text(run_here(L).run->plan_source(batch_at(L, 2))));
  return 1;
}

int save(lua_State* L) {
  auto& self = check<RunRef>(L, 1);
  self.saved = to_text(L, 2, "directory");
  const Work work("saving a checkpoint", Work::of_engine);
  self.run->save(self.saved, to_text(L, 3, "extra"));
  return 0;
}

int load(lua_State* L) {
  auto& self = check<RunRef>(L, 1);
  const Work work("loading a checkpoint", Work::of_engine);
  const std::string extra = self.run->load(to_text(L, 2, "directory"));
  lua_pushinteger(L, self.run->steps_done());
  push_text(L, extra);
  return 2;
}

int counters(lua_State* L) {
  const Counters now = check<RunRef>(L, 1).run->counters();
  lua_createtable(L, 0, 7);
  const auto put = [L](const char* name, uint64_t value) {
    lua_pushinteger(L, static_cast<lua_Integer>(value));
    lua_setfield(L, -2, name);
  };
  put("steps", static_cast<uint64_t>(now.steps));
  put("arena_bytes", now.arena_bytes);
  put("planned_arena_bytes", now.planned_arena_bytes);
  put("predicted_bytes_sent", now.predicted_bytes_sent);
  put("bytes_sent", now.bytes_sent);
  put("planned_bytes_copied", now.planned_bytes_copied);
  put("bytes_copied", now.bytes_copied);
  return 1;
}

bool run_properties(lua_State* L, const std::string& key) {
  if (key != "steps") return false;
  lua_pushinteger(L, check<RunRef>(L, 1).run->steps_done());
  return true;
}

int mean(lua_State* L) {
  lua_pushnumber(L, check<Result>(L, 1).result->get("loss"));
  return 1;
}

int get(lua_State* L) {
  StepResult& result = *check<Result>(L, 1).result;
  const std::string name = to_text(L, 2, "name");
  if (auto tensor = result.tensors.find(name); tensor != result.tensors.end())
    push(L, Host{tensor->second});
  else
    lua_pushnumber(L, result.get(name));
  return 1;
}

int names(lua_State* L) {
  StepResult& result = *check<Result>(L, 1).result;
  std::vector<std::string> list = result.names();
  for (const auto& [name, tensor] : result.tensors) list.push_back(name);
  lua_createtable(L, static_cast<int>(list.size()), 0);
  for (size_t i = 0; i < list.size(); ++i) {
    push_text(L, list[i]);
    lua_rawseti(L, -2, static_cast<lua_Integer>(i) + 1);
  }
  return 1;
}

bool result_properties(lua_State* L, const std::string& key) {
  if (key != "step") return false;
  lua_pushinteger(L, check<Result>(L, 1).result->step);
  return true;
}

bool field_properties(lua_State* L, const std::string& key) {
  const Type& type = check<Field>(L, 1).value.type;
  if (key == "shape") return push_shape(L, type.dims), true;
  if (key == "dtype") return push_text(L, dtype_name(type.dtype)), true;
  return false;
}

int field_read(lua_State* L) {
  const BatchField& field = check<Field>(L, 1).value;
  HostTensor all = HostTensor::make(field.type);
  field.load(0, field.type.dims[0], all.data<std::byte>());
  push(L, Host{all});
  return 1;
}

}  // namespace

std::vector<Api> run_api() {
  const std::vector<Arg> with_batch = {{"self", "Run"}, {"batch", "table"}};
  return {
      {"engine",
       "run",
       "orrery.Run",
       "What orrery.compile makes, from a complete specification.",
       make_run,
       {{"spec", "table"}},
       {}},
      {"Run",
       "step",
       "orrery.StepResult",
       "Trains on one batch, {field = tensor}.",
       step,
       with_batch,
       {}},
      {"Run",
       "eval",
       "orrery.StepResult",
       "Evaluates the loss; no dropout, no update.",
       evaluate,
       with_batch,
       {}},
      {"Run",
       "plan",
       "string",
       "What a step on this batch will do; nothing is run.",
       plan,
       with_batch,
       {}},
      {"Run",
       "counters",
       "table",
       "What this rank has used: steps trained, arena_bytes allocated, bytes_sent and, between "
       "memory tiers, bytes_copied in those steps; and planned_arena_bytes, predicted_bytes_sent, "
       "planned_bytes_copied as the plan and the strategies said before.",
       counters,
       {{"self", "Run"}},
       {}},
      {"Run",
       "save",
       "",
       "Writes a checkpoint directory; all ranks call it.",
       save,
       {{"self", "Run"}, {"directory", "string"}, {"extra", "string", "''"}},
       {}},
      {"Run",
       "load",
       "integer, string",
       "Continues from a checkpoint; the steps done and `extra`.",
       load,
       {{"self", "Run"}, {"directory", "string"}},
       {}},
      {"StepResult",
       "mean",
       "number",
       "The loss; waits for the step.",
       mean,
       {{"self", "StepResult"}},
       {}},
      {"StepResult",
       "get",
       "number | orrery.HostTensor",
       "An output by name: 'loss', 'grad_norm', the loss function's own.",
       get,
       {{"self", "StepResult"}, {"name", "string"}},
       {}},
      {"StepResult",
       "names",
       "string[]",
       "The names that get() knows.",
       names,
       {{"self", "StepResult"}},
       {}},
      {"Field",
       "read",
       "orrery.HostTensor",
       "Loads the whole field.",
       field_read,
       {{"self", "Field"}},
       {}},
  };
}

void define_run_classes(lua_State* L) {
  define_class<RunRef>(L, {"Run"}, run_properties, {"steps"});
  define_class<Result>(L, {"StepResult"}, result_properties, {"step"});
  define_class<Field>(L, {"Field"}, field_properties, {"shape", "dtype"});
  lua_pop(L, 3);
}

}  // namespace orrery::lua
