// SPDX-License-Identifier: Apache-2.0
#include "lua/strategy_script.h"

#include <mutex>
#include <optional>

#include <orrery/sdk/traffic.hpp>

#include "lower/edit_table.h"
#include "lua/objects.h"
#include "plugin/host.h"

namespace orrery::lua {
namespace {

struct Script {
  lua_State* L;
  std::string provides, requires_, conflicts;
  int32_t numeric_class = ORR_CLASS_APPROX;
  std::optional<Function> transform, transform_forward, predict;
  std::mutex one_at_a_time;  // a plan asks for many ranks side by side
  orr_strategy_api table{};
};

Script& script_of(void* self) { return *static_cast<Script*>(self); }

std::string words_at(lua_State* L, int index, const char* name) {
  const std::string words = lua_getfield(L, index, name) == LUA_TNIL ? "" : to_text(L, -1, name);
  lua_pop(L, 1);
  return words;
}

std::optional<Function> function_at(lua_State* L, int index, const char* name) {
  std::optional<Function> found;
  if (lua_getfield(L, index, name) != LUA_TNIL) found.emplace(L, lua_gettop(L));
  lua_pop(L, 1);
  return found;
}

int32_t class_at(lua_State* L, int index) {
  const std::string name = words_at(L, index, "class");
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

// The draft is good for this call: a script that kept it would hold a program that is gone.
void edit(Script& s, const std::optional<Function>& body, orr_program* program,
          const orr_edit* edit) {
  if (!body) return;
  const int top = lua_gettop(s.L);
  const Trace trace(s.L, *program->program);
  body->push();
  Draft& draft = push(s.L, Draft{program, edit});
  lua_pushvalue(s.L, -1);
  lua_insert(s.L, top + 1);
  try {
    protected_call(s.L, 1, 0);
  } catch (...) {
    draft.program = nullptr;
    lua_settop(s.L, top);
    throw;
  }
  draft.program = nullptr;
  lua_settop(s.L, top);
}

orr_status* transform(void* self, orr_program* program, const orr_edit* calls, const orr_options*) {
  return guarded([&] { edit(script_of(self), script_of(self).transform, program, calls); });
}

orr_status* transform_forward(void* self, orr_program* program, const orr_edit* calls,
                              const orr_options*) {
  return guarded([&] { edit(script_of(self), script_of(self).transform_forward, program, calls); });
}

orr_status* schedule(void*, const orr_options*, int32_t, int32_t, int32_t, orr_cell*, int32_t,
                     int32_t*) {
  return guarded([] { fail(ORR_INVALID, "deals the model to stages but defines no schedule"); });
}

void push_query(lua_State* L, const orr_predict_query& q) {
  lua_newtable(L);
  const auto set = [&](const char* name, int64_t value) {
    lua_pushinteger(L, value);
    lua_setfield(L, -2, name);
  };
  set("ranks", q.axis_size), set("rank", q.rank);
  set("elements", static_cast<int64_t>(q.reduced_elements)), set("element_bytes", q.element_bytes);
  set("nodes", q.nodes), set("total_nodes", q.total_nodes);
  push_text(L, orr::traffic::name(q.op));
  lua_setfield(L, -2, "op");
  if (!q.counts) return;
  lua_createtable(L, q.axis_size, 0);
  for (int32_t r = 0; r < q.axis_size; ++r) {
    lua_pushinteger(L, q.counts[r]);
    lua_rawseti(L, -2, r + 1);
  }
  lua_setfield(L, -2, "counts");
}

orr_status* predict(void* self, const orr_predict_query* query, orr_prediction* out) {
  return guarded([&] {
    Script& s = script_of(self);
    out->bytes_sent = 0;
    std::lock_guard lock(s.one_at_a_time);
    const int top = lua_gettop(s.L);
    luaL_checkstack(s.L, 8, "predict");
    s.predict->push();
    push_query(s.L, *query);
    protected_call(s.L, 1, 1);
    out->bytes_sent = static_cast<uint64_t>(to_integer(s.L, -1, "what predict returns"));
    lua_settop(s.L, top);
  });
}

}  // namespace

std::shared_ptr<const orr_strategy_api> script_strategy(lua_State* L, int index) {
  auto script = std::make_shared<Script>();
  script->L = L;
  script->numeric_class = class_at(L, index);
  script->provides = words_at(L, index, "provides");
  script->requires_ = words_at(L, index, "requires");
  script->conflicts = words_at(L, index, "conflicts");
  script->transform = function_at(L, index, "transform");
  script->transform_forward = function_at(L, index, "transform_forward");
  script->predict = function_at(L, index, "predict");
  script->table = {sizeof(orr_strategy_api),
                   script.get(),
                   describe,
                   transform,
                   script->predict ? predict : nullptr,
                   schedule,
                   transform_forward};
  return {script, &script->table};
}

}  // namespace orrery::lua
