// SPDX-License-Identifier: Apache-2.0
//
// Tools of the Lua library, and of authors of layers: regions, option tables, errors at the user's
// line, path patterns, plugin names, digests, the log.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <orrery/sdk/path.hpp>

#include "base/text.h"
#include "edit/contract.h"
#include "lua/call.h"
#include "lua/environment.h"
#include "lua/script.h"
#include "plugin/registry.h"
#include "run/runtime.h"
#include "run/watched.h"
#include "store/writer_lock.h"

namespace orrery::lua {
namespace {

std::string_view tree_of(std::string_view region) { return region.substr(0, region.find('.')); }

// A module of another tree that a part of this one calls, such as an adapter in place of a layer,
// belongs to that part.
Region region(const std::string& path) {
  const std::string outer = regions().empty() ? "" : regions().back();
  const bool guest = outer.find('.') != outer.npos && tree_of(outer) != tree_of(path);
  regions().push_back(guest ? outer + "." + path : path);
  return {regions().size()};
}

void region_close(Region& region) {
  if (regions().size() >= region.depth) regions().resize(region.depth - 1);
}

void fail_in_script(const std::string& message) { throw Error(ORR_INVALID, message); }
void fail_usage(const std::string& message) { throw Error(kUsageError, message); }

std::string described_value(lua_State* L, Index value) { return describe(L, value); }

std::string nearest_name(lua_State* L, const std::string& name, Index known) {
  return did_you_mean(name, texts_at(L, known, "name"));
}

std::vector<std::string> strategies() { return Registry::get().names(ORR_KIND_STRATEGY); }

// Pushes the options of a strategy plugin, for the manual.
Pushed strategy_options(lua_State* L, const std::string& name) {
  const orr_strategy_info info = described({name, {}, ""});
  const std::vector<orr_option> all(info.options, info.options + info.n_options);
  push_list(L, all, [&](lua_State* state, const orr_option& option) {
    const char* choices = info.choices ? info.choices[&option - all.data()] : nullptr;
    lua_newtable(state);
    set_field(state, "name", option.name);
    set_field(state, "doc", option.doc ? option.doc : "");
    set_field(state, "fallback", option.fallback ? option.fallback : "");
    set_field(state, "optional", !option.required);
    set_field(state, "type",
              choices                        ? "'" + join(orr::path::cut(choices, ','), "'|'") + "'"
              : option.type == ORR_ATTR_INT  ? "integer"
              : option.type == ORR_ATTR_REAL ? "number"
                                             : "any");
  });
  return {1};
}

// XXH3-128 over all bytes, in the order of the list.
std::string digest(lua_State* L, Index list) {
  std::vector<std::shared_ptr<State>> states = states_at(L, list);
  materialize(states);
  XXH3_state_t* hash = XXH3_createState();
  XXH3_128bits_reset(hash);
  for (const auto& state : states) {
    const HostTensor value = read_state(*state);
    XXH3_128bits_update(hash, value.bytes->data(), value.type.bytes());
  }
  const XXH128_hash_t sum = XXH3_128bits_digest(hash);
  XXH3_freeState(hash);
  return fmt::format("{:016x}{:016x}", sum.high64, sum.low64);
}

void fact(const std::string& name, const std::string& text) {
  Runtime::get().observers().fact(name, 0, text);
}

std::string writer_of_run(const std::string& directory) {
  return living_writer(directory, kRunning);
}

double now() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(since).count();
}

void push_arg(lua_State* L, const Arg& arg) {
  const bool rest = arg.is("rest");
  lua_newtable(L);
  set_field(L, "name", arg.name);
  set_field(L, "type", arg.type->luals);
  set_field(L, "doc", arg.doc);
  set_field(L, "fallback", arg.fallback == "nil" ? "" : arg.fallback.value_or(""));
  set_field(L, "optional", arg.fallback && !rest);
}

void push_row(lua_State* L, const Api& row) {
  lua_newtable(L);
  set_field(L, "owner", row.owner), set_field(L, "name", row.name);
  set_field(L, "returns", row.returns), set_field(L, "doc", row.doc);
  set_field(L, "method", row.kind == Api::method), set_field(L, "field", row.kind == Api::field);
  const auto self = row.kind == Api::method ? 1 : 0;
  push_list(L, std::vector<Arg>(row.args.begin() + self, row.args.end()), push_arg);
  lua_setfield(L, -2, "parameters");
  push_list(L, row.options, push_arg);
  lua_setfield(L, -2, "options");
}

// The rows of C++, then those of the Lua library.
Pushed rows(lua_State* L) {
  push_list(L, api(), push_row);
  for (const auto& [declaration, row] : library_api()) {
    push_row(L, row);
    lua_rawseti(L, -2, static_cast<lua_Integer>(lua_rawlen(L, -2)) + 1);
  }
  return {1};
}

void define(lua_State* L, const std::string& declaration, Index body) {
  lua_pushvalue(L, body);
  install_row(L, row_of_library(declaration));
}

bool is_file(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error);
}

int load_file(lua_State* L) {
  load_chunk(L, read_script(to_text(L, 1, "path")), to_text(L, 2, "name"));
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

bool plan_only() { return runtime_options().plan_only; }

std::string script_path() { return given_script().path; }
std::vector<std::string> script_arguments() { return given_script().arguments; }

}  // namespace

std::vector<Api> tool_api() {
  return {
      {"orrery.region(path: string) -> Region; Names the module that ops belong to until the "
       "result is closed: local r <close> = ...",
       call<region>},
      {"Region.__close(a: any, b?: any); Ends the region.", call<region_close>},
      {"orrery.fail(message: string); Raises an error at the innermost line of the user's script.",
       call<fail_in_script>},
      {"engine.describe(value: any) -> string; What errors call a value: 'a Tensor', 3, "
       "\"'text'\".",
       call<described_value>},
      {"orrery.did_you_mean(word: string, known: list) -> string; \" (did you mean 'x'?)\" for "
       "the nearest name, or \"\".",
       call<nearest_name>},
      {"orrery.natural_less(a: string, b: string) -> boolean; Order of names: 'blocks.2' before "
       "'blocks.10'.",
       call<natural_less>},
      {"engine.strategies() -> string[]; Names of the strategy plugins.", call<strategies>},
      {"engine.strategy_options(name: string) -> table[]; The options of a strategy plugin, for "
       "the manual.",
       call<strategy_options>},
      {"engine.here() -> string; The user's file:line.", call<user_line>},
      {"engine.keep_frame(f: function) -> function; The function, called through C: a script's "
       "`return f(x)` is no tail call then, which would lose its line.",
       keep_frame},
      {"engine.digest(states: table) -> string; Hash of the bytes of states.", call<digest>},
      {"engine.fact(name: string, text: string); Tells observers a fact of the run.", call<fact>},
      {"engine.writer_of_run(directory: string) -> string; The process that writes to the "
       "directory of "
       "a run now, in words; '': none does.",
       call<writer_of_run>},
      {"engine.print(line: string); One line on stdout, from rank 0.", call<print_line>},
      {"engine.define(declaration: string, body: function); Declares a function of the library, in "
       "the words of core/lua/api.h; its arguments are checked and its defaults filled in.",
       call<define>},
      {"engine.rows() -> table[]; What is declared so, here and in C++, for the manual.",
       call<rows>},
      {"engine.library() -> string; The Lua library's directory.", call<lua_library>},
      {"engine.is_file(path: string) -> boolean; Whether there is such a file.", call<is_file>},
      {"engine.load_file(path: string, name: string) -> function; The file as a chunk of this "
       "name.",
       load_file},
      {"engine.script() -> string; The script's path; '': none runs.", call<script_path>},
      {"engine.arguments() -> string[]; The words behind the script.", call<script_arguments>},
      {"engine.fail_usage(message: string); An error of the command line.", call<fail_usage>},
      {"engine.plan_only() -> boolean; Whether the script runs for its plan.", call<plan_only>},
      {"orrery.type(value: any) -> string; 'Tensor', 'State', 'Module', ...: the class of a value, "
       "or its Lua type.",
       type_name},
      {"orrery.time() -> number; Seconds of a clock that never goes back.", call<now>},
  };
}

}  // namespace orrery::lua
