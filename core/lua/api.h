// SPDX-License-Identifier: Apache-2.0
//
// The one table of what C++ offers to scripts. A row names a function, its arguments with types and
// defaults, its options and what it is for; from it come the argument checks at every call and what
// the manual says (lua/manual.h). So a body finds checked arguments with defaults filled in.
#pragma once

#include <string>
#include <vector>

#include "lua/layer.h"

namespace orrery::lua {

// `type`: a row of the type table (api.cpp), "rest" for any further values, "options" for a table
// with the row's options. `fallback`: a Lua literal ("nil", "false", "1", "'f32'"); null: required.
struct Arg {
  const char* name;
  const char* type;
  const char* fallback = nullptr;
  const char* doc = "";
};

struct Api {
  const char* owner;  // the table or class: "orrery", "Tensor"
  const char* name;
  const char* returns;  // LuaLS types, "" for nothing
  const char* doc;
  int (*body)(lua_State*);
  std::vector<Arg> args;
  std::vector<Arg> options;
};

// All rows, in the order of the files below.
const std::vector<Api>& api();

// One list per file.
std::vector<Api> math_api();
std::vector<Api> shape_api();
std::vector<Api> reduce_api();
std::vector<Api> comm_api();
std::vector<Api> layer_api();
std::vector<Api> make_api();
std::vector<Api> host_api();
std::vector<Api> state_api();
std::vector<Api> run_api();
std::vector<Api> func_api();
std::vector<Api> gradient_api();
std::vector<Api> plugin_op_api();
std::vector<Api> draft_view_api();
std::vector<Api> draft_edit_api();
std::vector<Api> draft_program_api();
std::vector<Api> draft_hook_api();
std::vector<Api> world_api();
std::vector<Api> data_api();
std::vector<Api> script_api();
std::vector<Api> tool_api();

// Sets all functions of `owner` in the table on top of the stack.
void install(lua_State* L, const std::string& owner);
std::vector<std::string> names_of(const std::string& owner);

// Reads one field of the options table at `index` (checked, defaults filled by the dispatcher).
bool option_bool(lua_State* L, int index, const char* name);
int64_t option_int(lua_State* L, int index, const char* name);
double option_real(lua_State* L, int index, const char* name);
std::string option_text(lua_State* L, int index, const char* name);

// Makes T's metatable: methods of the rows, `properties(L, key)` (pushes one value and returns true
// if it knows the key; `fields` names what it knows) and an error with the nearest for anything
// else.
using Properties = bool (*)(lua_State* L, const std::string& key);
void make_class(lua_State* L, const char* name, const std::vector<std::string>& owners,
                Properties properties, const std::vector<std::string>& fields);

// make_class with T's finalizer; leaves the metatable on the stack.
template <class T>
void define_class(lua_State* L, const std::vector<std::string>& owners,
                  Properties properties = nullptr, const std::vector<std::string>& fields = {}) {
  push_class<T>(L);
  make_class(L, T::kClass, owners, properties, fields);
}

}  // namespace orrery::lua
