// SPDX-License-Identifier: Apache-2.0
//
// What the Lua library (and whoever writes layers) needs besides tensors: regions, option tables,
// errors in the user's line, path patterns, plugin names, digests, the log.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <chrono>
#include <cstdio>

#include <algorithm>

#include "base/text.h"
#include "lua/api.h"
#include "lua/environment.h"
#include "lua/manual.h"
#include "lua/objects.h"
#include "lua/script.h"
#include "plugin/registry.h"
#include "run/runtime.h"

namespace orrery::lua {
namespace {

int region(lua_State* L) {
  regions().push_back(to_text(L, 1, "path"));
  push(L, Region{regions().size()});
  return 1;
}

int region_close(lua_State* L) {
  const size_t depth = check<Region>(L, 1).depth;
  if (regions().size() >= depth) regions().resize(depth - 1);
  return 0;
}

int fail_in_script(lua_State* L) { throw Error(ORR_INVALID, to_text(L, 1, "message")); }

// The given options over the defaults; unknown keys are errors.
int options(lua_State* L) {
  const std::string what = to_text(L, 1, "what");
  const std::vector<std::string> known = sorted_keys(L, 3);
  lua_newtable(L);
  for (const std::string& key : known) {
    lua_getfield(L, 3, key.c_str());
    lua_setfield(L, 4, key.c_str());
  }
  if (lua_isnil(L, 2)) return 1;
  if (!lua_istable(L, 2)) {
    fail(ORR_INVALID, "{}: options are {}, expected a table", what, describe(L, 2));
  }
  lua_pushnil(L);
  while (lua_next(L, 2)) {
    const std::string key = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : describe(L, -2);
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      fail(ORR_INVALID, "{}: unknown option '{}'{}", what, key, did_you_mean(key, known));
    }
    lua_setfield(L, 4, key.c_str());
  }
  return 1;
}

int nearest_name(lua_State* L) {
  std::vector<std::string> known;
  for (lua_Integer i = 1; lua_rawgeti(L, 2, i) != LUA_TNIL; ++i) {
    known.push_back(to_text(L, -1, "name"));
    lua_pop(L, 1);
  }
  push_text(L, did_you_mean(to_text(L, 1, "word"), known));
  return 1;
}

// '*' stands for any letters, dots included.
bool matches(const char* pattern, const char* path) {
  if (!*pattern) return !*path;
  if (*pattern == '*') return matches(pattern + 1, path) || (*path && matches(pattern, path + 1));
  return *pattern == *path && matches(pattern + 1, path + 1);
}

int glob(lua_State* L) {
  lua_pushboolean(L, matches(lua_tostring(L, 1), lua_tostring(L, 2)));
  return 1;
}

int before(lua_State* L) {
  lua_pushboolean(L, natural_less(to_text(L, 1, "name"), to_text(L, 2, "name")));
  return 1;
}

int strategies(lua_State* L) {
  const std::vector<std::string> names = Registry::get().names(ORR_KIND_STRATEGY);
  lua_newtable(L);
  for (size_t i = 0; i < names.size(); ++i) {
    push_text(L, names[i]);
    lua_rawseti(L, -2, static_cast<lua_Integer>(i) + 1);
  }
  return 1;
}

int here(lua_State* L) {
  push_text(L, user_line(L));
  return 1;
}

// XXH3-128 over all bytes, in the order of the list.
int digest(lua_State* L) {
  std::vector<std::shared_ptr<State>> states = states_at(L, 1);
  materialize(states);
  XXH3_state_t* hash = XXH3_createState();
  XXH3_128bits_reset(hash);
  for (const auto& state : states) {
    const HostTensor value = read_state(*state);
    XXH3_128bits_update(hash, value.bytes->data(), value.type.bytes());
  }
  const XXH128_hash_t sum = XXH3_128bits_digest(hash);
  XXH3_freeState(hash);
  push_text(L, fmt::format("{:016x}{:016x}", sum.high64, sum.low64));
  return 1;
}

int print_line(lua_State* L) {
  if (world_info().rank != 0) return 0;
  Runtime::get().observers().log(to_text(L, 1, "line"));
  const std::string line = to_text(L, 1, "line") + "\n";
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fflush(stdout);
  return 0;
}

int now(lua_State* L) {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  lua_pushnumber(L, std::chrono::duration<double>(since).count());
  return 1;
}

int help(lua_State* L) {
  std::printf("%s", lua_help(to_text(L, 1, "name")).c_str());
  return 0;
}

int manual_names(lua_State* L) {
  lua_newtable(L);
  for (const Entry& entry : manual()) {
    push_text(L, entry.full());
    lua_rawseti(L, -2, static_cast<lua_Integer>(lua_rawlen(L, -2)) + 1);
  }
  return 1;
}

int library(lua_State* L) {
  push_text(L, lua_library());
  return 1;
}

int type_name(lua_State* L) {
  if (luaL_getmetafield(L, 1, "__name") == LUA_TNIL) lua_pushstring(L, luaL_typename(L, 1));
  return 1;
}

int call_kept(lua_State* L) {
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_insert(L, 1);
  lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
  return lua_gettop(L);
}

int keep_frame(lua_State* L) {
  lua_pushcclosure(L, call_kept, 1);
  return 1;
}

int plan_only(lua_State* L) {
  lua_pushboolean(L, runtime_options().plan_only);
  return 1;
}

}  // namespace

std::vector<Api> tool_api() {
  return {
      {"orrery",
       "region",
       "orrery.Region",
       "Names the module that ops belong to until the result is closed: local r <close> = ...",
       region,
       {{"path", "string"}},
       {}},
      {"Region",
       "__close",
       "",
       "Ends the region.",
       region_close,
       {{"a", "any"}, {"b", "any", "nil"}},
       {}},
      {"orrery",
       "fail",
       "",
       "Raises an error at the innermost line of the user's script.",
       fail_in_script,
       {{"message", "string"}},
       {}},
      {"orrery",
       "options",
       "table",
       "Checks an option table: `defaults` with the given values; unknown names are errors.",
       options,
       {{"what", "string"}, {"given", "any"}, {"defaults", "table"}},
       {}},
      {"orrery",
       "did_you_mean",
       "string",
       "\" (did you mean 'x'?)\" for the nearest name, or \"\".",
       nearest_name,
       {{"word", "string"}, {"known", "table"}},
       {}},
      {"orrery",
       "glob",
       "boolean",
       "Whether a path matches a pattern with '*'.",
       glob,
       {{"pattern", "string"}, {"path", "string"}},
       {}},
      {"orrery",
       "natural_less",
       "boolean",
       "Order of names: 'blocks.2' before 'blocks.10'.",
       before,
       {{"a", "string"}, {"b", "string"}},
       {}},
      {"engine", "strategies", "string[]", "Names of the strategy plugins.", strategies, {}, {}},
      {"engine", "here", "string", "The user's file:line.", here, {}, {}},
      {"engine",
       "keep_frame",
       "function",
       "The function, called through C: a script's `return f(x)` is no tail call then, which would "
       "lose its line.",
       keep_frame,
       {{"f", "function"}},
       {}},
      {"engine",
       "digest",
       "string",
       "Hash of the bytes of states.",
       digest,
       {{"states", "table"}},
       {}},
      {"engine",
       "print",
       "",
       "One line on stdout, from rank 0.",
       print_line,
       {{"line", "string"}},
       {}},
      {"engine",
       "manual",
       "string[]",
       "Names of all that orrery.help knows.",
       manual_names,
       {},
       {}},
      {"engine", "library", "string", "The Lua library's directory.", library, {}, {}},
      {"engine",
       "plan_only",
       "boolean",
       "Whether the script runs for its plan.",
       plan_only,
       {},
       {}},
      {"orrery",
       "type",
       "string",
       "'Tensor', 'State', 'Module', ...: the class of a value, or its Lua type.",
       type_name,
       {{"value", "any"}},
       {}},
      {"orrery", "time", "number", "Seconds of a clock that never goes back.", now, {}, {}},
      {"orrery",
       "help",
       "",
       "Prints what a function does and takes.",
       help,
       {{"name", "string"}},
       {}},
  };
}

void define_tool_classes(lua_State* L) {
  define_class<Region>(L, {"Region"});
  lua_pop(L, 1);
}

}  // namespace orrery::lua
