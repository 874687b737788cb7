// SPDX-License-Identifier: Apache-2.0
#include "lua/strategy_script.h"

#include <mutex>
#include <optional>

#include <orrery/sdk/traffic.hpp>

#include "lua/strategy_draft.h"

namespace orrery::lua {
namespace {

struct Script {
  lua_State* L;
  std::string provides, requires_, conflicts;
  int32_t numeric_class = ORR_CLASS_APPROX;
  std::optional<Function> transform, transform_forward, predict;
  std::mutex one_at_a_time;  // plans of several ranks are made on several threads
  orr_strategy_api table{};
};

Script& script_of(void* self) { return *static_cast<Script*>(self); }

std::string texts_in(const Table& given, const char* name) {
  return given.has(name) ? given.text(name) : "";
}

std::optional<Function> function_in(const Table& given, const char* name) {
  if (!given.has(name)) return {};
  return given.with(name, function_at);
}

int32_t class_in(const Table& given) {
  const std::string name = texts_in(given, "class");
  if (name == "exact") return ORR_CLASS_EXACT;
  if (name == "stale") return ORR_CLASS_STALE;
  if (name == "approx") return ORR_CLASS_APPROX;
  fail(ORR_INVALID, "class '{}' of a strategy: there are exact, stale and approx", name);
}

orr_status* describe(void* self, orr_strategy_info* out) {
  const Script& s = script_of(self);
  out->numeric_class = s.numeric_class;
  out->provides = s.provides.c_str(), out->requires_ = s.requires_.c_str(),
  out->conflicts = s.conflicts.c_str();
  return nullptr;
}

orr_status* edited(const std::optional<Function>& body, orr_program* program,
                   const orr_edit* calls) {
  return guarded([&] {
    if (body)
      call_with_draft(
          *body, program, calls, 0, [](lua_State*) {}, [](lua_State*, int) {});
  });
}

orr_status* transform(void* self, orr_program* program, const orr_edit* calls, const orr_options*) {
  return edited(script_of(self).transform, program, calls);
}

orr_status* transform_forward(void* self, orr_program* program, const orr_edit* calls,
                              const orr_options*) {
  return edited(script_of(self).transform_forward, program, calls);
}

orr_status* schedule(void*, const orr_options*, int32_t, int32_t, int32_t, orr_cell*, int32_t,
                     int32_t*) {
  return guarded([] { fail(ORR_INVALID, "deals the model to stages but defines no schedule"); });
}

void push_query(lua_State* L, const orr_predict_query& q) {
  lua_newtable(L);
  set_field(L, "ranks", q.axis_size), set_field(L, "rank", q.rank);
  set_field(L, "elements", static_cast<int64_t>(q.reduced_elements));
  set_field(L, "element_bytes", q.element_bytes);
  set_field(L, "nodes", q.nodes), set_field(L, "total_nodes", q.total_nodes);
  set_field(L, "op", orr::traffic::name(q.op));
  if (!q.counts) return;
  push_list(L, std::vector<int64_t>(q.counts, q.counts + q.axis_size));
  lua_setfield(L, -2, "counts");
}

orr_status* predict(void* self, const orr_predict_query* query, orr_prediction* out) {
  return guarded([&] {
    Script& s = script_of(self);
    out->bytes_sent = 0;
    std::lock_guard lock(s.one_at_a_time);
    const StackTop top(s.L);
    luaL_checkstack(s.L, 8, "predict");
    s.predict->push();
    push_query(s.L, *query);
    protected_call(s.L, 1, 1);
    out->bytes_sent = static_cast<uint64_t>(to_integer(s.L, -1, "what predict returns"));
  });
}

// Makes a strategy's table from a table of the script. Errors of its functions become statuses with
// their Lua line. It is made and called on the main thread; only `predict` may be called on
// another, while the main thread waits.
std::shared_ptr<const orr_strategy_api> script_strategy(const Table& given) {
  auto script = std::make_shared<Script>();
  script->L = given.L;
  script->numeric_class = class_in(given);
  script->provides = texts_in(given, "provides");
  script->requires_ = texts_in(given, "requires");
  script->conflicts = texts_in(given, "conflicts");
  script->transform = function_in(given, "transform");
  script->transform_forward = function_in(given, "transform_forward");
  script->predict = function_in(given, "predict");
  script->table = {sizeof(orr_strategy_api),
                   script.get(),
                   describe,
                   transform,
                   script->predict ? predict : nullptr,
                   schedule,
                   transform_forward};
  return {script, &script->table};
}

// The script's schedule: function(stage, stages, microbatches) -> {"F0", "B0", ...}.
auto schedule_at(lua_State* L, int index) {
  return [order = Function(L, index)](int stage, int stages, int microbatches) {
    lua_State* state = order.state();
    const StackTop top(state);
    order.push();
    for (int number : {stage, stages, microbatches}) lua_pushinteger(state, number);
    protected_call(state, 3, 1);
    return texts_at(state, top.at + 1, "a cell of the schedule");
  };
}

void read_options(const Table& options, StrategyUse& use) {
  for (const std::string& name : sorted_keys(options.L, options.index)) {
    use.options[name] = options.with(name, [&](lua_State* L, int at) -> Attr {
      if (name != "schedule" || !lua_isfunction(L, at))
        return attr_at(L, at, use.name + ": " + name);
      use.order = schedule_at(L, at);
      return std::string("script");
    });
  }
}

// Reads the table that strategy.define of the Lua library passes on.
void use_script(const Table& script, StrategyUse& use) {
  use.script = script_strategy(script);
  if (script.has("schedule")) use.order = script.with("schedule", schedule_at);
}

StrategyUse use_at(lua_State* L, int index) {
  const Table entry{L, index};
  StrategyUse use{entry.text("name"), {}, entry.text("line")};
  lua_getfield(L, index, "options");
  read_options({L, lua_gettop(L)}, use);
  if (lua_getfield(L, index, "script") == LUA_TTABLE) use_script({L, lua_gettop(L)}, use);
  lua_pop(L, 2);
  return use;
}

}  // namespace

std::vector<StrategyUse> strategies_in(const Table& given) {
  return given.with("strategies", [](lua_State* L, int at) { return list_at(L, at, use_at); });
}

}  // namespace orrery::lua
