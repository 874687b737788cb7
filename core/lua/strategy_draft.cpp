// SPDX-License-Identifier: Apache-2.0
//
// What strategies written in Lua change: the editing calls of strategy/1.
#include "lua/strategy_draft.h"

#include <map>

#include "lua/api.h"
#include "plugin/host.h"

namespace orrery::lua {
namespace {

const std::map<std::string, int32_t> kPieces = {
    {"state", ORR_SHARD_STATE}, {"gradient", ORR_SHARD_GRADIENT}, {"param", ORR_SHARD_PARAM}};
int axis(lua_State* L) {
  const Draft& d = open_draft(L);
  const std::string name = to_text(L, 2, "name");
  orrery::check(d.edit->axis(d.program, name.c_str(), static_cast<int32_t>(lua_tointeger(L, 3))));
  lua_pushinteger(L, d.edit->axis_size(d.program, name.c_str()));
  return 1;
}

int halve(lua_State* L) {
  const Draft& d = open_draft(L);
  orrery::check(d.edit->halve(d.program, to_text(L, 2, "axis").c_str(),
                              to_text(L, 3, "outer").c_str(), to_text(L, 4, "inner").c_str(),
                              static_cast<int32_t>(lua_tointeger(L, 5))));
  return 0;
}

int place(lua_State* L) {
  const Draft& d = open_draft(L);
  const int32_t dim = static_cast<int32_t>(lua_tointeger(L, 4)) - 1;
  orrery::check(d.edit->place(d.program, id_at(L, 2), to_text(L, 3, "axis").c_str(), dim));
  return 0;
}

int reduce(lua_State* L) {
  const Draft& d = open_draft(L);
  orrery::check(
      d.edit->reduce(d.program, id_at(L, 2), to_text(L, 3, "axis").c_str(), lua_tointeger(L, 4)));
  return 0;
}

int remark(lua_State* L) {
  const Draft& d = open_draft(L);
  orrery::check(d.edit->diag(d.program, to_text(L, 2, "text").c_str()));
  return 0;
}

int loop(lua_State* L) {
  const Draft& d = open_draft(L);
  orrery::check(d.edit->loop(d.program));
  return 0;
}

int stage(lua_State* L) {
  const Draft& d = open_draft(L);
  std::vector<int32_t> where;
  for (int64_t rank : to_integers(L, 3, "where")) where.push_back(static_cast<int32_t>(rank));
  std::vector<std::string> modules;
  for (lua_Integer i = 1; lua_istable(L, 4) && lua_rawgeti(L, 4, i) != LUA_TNIL; ++i) {
    modules.push_back(to_text(L, -1, fmt::format("modules[{}]", i)));
    lua_pop(L, 1);
  }
  if (!modules.empty() && modules.size() != where.size())
    fail(ORR_INVALID, "{} chunks have ranks and {} have modules", where.size(), modules.size());
  std::vector<const char*> texts;
  for (const std::string& m : modules) texts.push_back(m.c_str());
  orrery::check(d.edit->stage(d.program, to_text(L, 2, "axis").c_str(),
                              static_cast<int32_t>(where.size()), where.data(),
                              texts.empty() ? nullptr : texts.data()));
  return 0;
}

int wait_in(lua_State* L) {
  static const std::map<std::string, int32_t> tiers = {{"host", ORR_LIFE_HOST},
                                                       {"disk", ORR_LIFE_DISK}};
  const Draft& d = open_draft(L);
  orrery::check(
      d.edit->life(d.program, id_at(L, 2), "", find("tier", to_text(L, 3, "tier"), tiers)));
  return 0;
}

int scatter(lua_State* L) {
  const Draft& d = open_draft(L);
  const int32_t dim = static_cast<int32_t>(lua_tointeger(L, 3)) - 1;
  orrery::check(d.edit->scatter(d.program, to_text(L, 2, "axis").c_str(), dim));
  return 0;
}

int chunk(lua_State* L) {
  const Draft& d = open_draft(L);
  orrery::check(d.edit->chunk(d.program, to_text(L, 2, "axis").c_str(),
                              static_cast<int32_t>(lua_tointeger(L, 3))));
  return 0;
}

int shard(lua_State* L) {
  const Draft& d = open_draft(L);
  const std::string axis = option_text(L, 3, "axis");
  const orr_shard how = {sizeof(orr_shard),
                         find("piece", option_text(L, 3, "what"), kPieces),
                         axis.c_str(),
                         static_cast<int32_t>(option_int(L, 3, "unit")),
                         static_cast<int32_t>(option_int(L, 3, "owner")),
                         option_bool(L, 3, "keep") ? 1 : 0,
                         option_int(L, 3, "ahead")};
  orrery::check(d.edit->shard(d.program, id_at(L, 2), &how));
  return 0;
}

int idle(lua_State* L) {
  const Draft& d = open_draft(L);
  orrery::check(d.edit->idle(d.program, to_text(L, 2, "axis").c_str(),
                             static_cast<int32_t>(lua_tointeger(L, 3))));
  return 0;
}

const std::map<std::string, int32_t> kTiers = {{"host", ORR_TIER_HOST}, {"disk", ORR_TIER_DISK}};

int offload(lua_State* L) {
  const Draft& d = open_draft(L);
  orrery::check(d.edit->offload(d.program, id_at(L, 2), find("tier", to_text(L, 3, "tier"), kTiers),
                                to_text(L, 4, "directory").c_str()));
  return 0;
}

}  // namespace

std::vector<Api> draft_edit_api() {
  const Arg self = {"self", "Draft"}, v = {"value", "value"}, on = {"axis", "string"};
  return {
      {"Draft",
       "axis",
       "integer",
       "Makes a mesh axis over `size` ranks (0: all that are left); its size.",
       axis,
       {self, {"name", "string"}, {"size", "integer", "0"}},
       {}},
      {"Draft",
       "halve",
       "",
       "Sees an axis as two: `size` neighbours form `inner`, equal places in them `outer`.",
       halve,
       {self, on, {"outer", "string"}, {"inner", "string"}, {"size", "integer"}},
       {}},
      {"Draft",
       "place",
       "",
       "Cuts a value along a dim over the ranks of an axis: batch fields along dim 1 are dealt; "
       "any other cut, over one axis or several, lets the ranks share the work on every sample, "
       "and "
       "what reads the value follows.",
       place,
       {self, v, on, {"dim", "integer"}},
       {}},
      {"Draft",
       "reduce",
       "",
       "Sums a gradient over an axis, in buckets of about `bucket` bytes.",
       reduce,
       {self, v, on, {"bucket", "integer", "26214400"}},
       {}},
      {"Draft", "remark", "", "A line for `orrery plan`.", remark, {self, {"text", "string"}}, {}},
      {"Draft", "loop", "", "Runs a rank's microbatches one after another.", loop, {self}, {}},
      {"Draft",
       "stage",
       "",
       "Deals the model in chunks: `where` lists their ranks on the axis, `modules` what is in "
       "them.",
       stage,
       {self, on, {"where", "integers"}, {"modules", "any", "nil"}},
       {}},
      {"Draft",
       "wait_in",
       "",
       "Lets a forward activation wait for backward in the tier host or disk.",
       wait_in,
       {self, v, {"tier", "string"}},
       {}},
      {"Draft",
       "scatter",
       "",
       "Keeps sums over an axis in shares of a dim where ops can work on them.",
       scatter,
       {self, on, {"dim", "integer"}},
       {}},
      {"Draft",
       "chunk",
       "",
       "Makes sums over dims cut over an axis trees of so many partial sums, on any number of "
       "ranks.",
       chunk,
       {self, on, {"chunks", "integer"}},
       {}},
      {"Draft",
       "shard",
       "",
       "Cuts the training of a parameter over the ranks that share the batch.",
       shard,
       {self, v, {"options", "options"}},
       {{"what", "string", "'state'", "state, gradient or param: each includes the ones before"},
        {"axis", "string", "'data'", "the axis that deals the batch, or its inner half"},
        {"unit", "integer", "0", "parameters of equal number travel together"},
        {"owner", "integer", "-1", "the coordinate that holds it whole; -1: cut evenly"},
        {"keep", "boolean", "false", "param: what forward gathered stays for backward"},
        {"ahead", "integer", "1", "param: units gathered ahead of the one in use"}}},
      {"Draft",
       "idle",
       "",
       "Deals no leaves to the first ranks of the axis that deals the batch.",
       idle,
       {self, on, {"ranks", "integer"}},
       {}},
      {"Draft",
       "offload",
       "",
       "Keeps a parameter or state in the tier host or disk between its uses.",
       offload,
       {self, v, {"tier", "string"}, {"directory", "string", "''"}},
       {}},
  };
}

}  // namespace orrery::lua
