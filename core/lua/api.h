// SPDX-License-Identifier: Apache-2.0
//
// The table of all functions that C++ offers to scripts. A row is a declaration and a body. The
// declaration gives the argument checks at every call and the text of the manual
// (scripts/orrery/manual.lua). So a body gets checked arguments, with defaults filled in.
//
//   "Tensor:slice(dim: integer, first: integer, last: integer = -1) -> Tensor; what it does"
//   "orrery.concat(tensors: table, dim: integer = -1) -> Tensor; ..."      a function
//   "Tensor.dtype: orrery.DType"                                           a field
//
// "name?" may be nil. "..." stands for any further values. "options" stands for a table; its fields
// are declared behind the doc by "@option name: type = default; what it is for". "@param name;
// text" describes an argument. Types are rows of the type table (api_types.cpp).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lua/layer.h"

namespace orrery::lua {

using Body = int (*)(lua_State*);

struct ApiType {
  const char* name;
  const char* luals;     // in stubs
  const char* expected;  // in messages
  bool (*is)(lua_State*, int index);
};
// The type of a name; null if there is none.
const ApiType* api_type(std::string_view name);

struct Arg {
  std::string name, doc;
  const ApiType* type;
  std::optional<std::string> fallback;  // a Lua literal; without one the argument is required
  bool is(std::string_view type_name) const { return type_name == type->name; }
};

struct Api {
  Api(std::string_view declaration, Body body);
  enum Kind { function, method, field } kind = function;
  std::string owner, name;  // the table or class: "orrery", "Tensor"
  std::string returns;      // LuaLS types, "" for nothing; of a field: its type
  std::string doc;
  Body body;
  std::vector<Arg> args, options;  // of a method, the first of args is self
};

// The rows of C++, in the order of the functions below.
const std::vector<Api>& api();

// A row that the Lua library declares, made at its first use and kept for the process; and all of
// them by declaration.
const Api& row_of_library(const std::string& declaration);
const std::map<std::string, Api>& library_api();

// Sets the function on top of the stack, and pops it, as what the row declares: in its table, or as
// a method of its class. Its arguments are checked as those of C++ are.
void install_row(lua_State* L, const Api& row);

// The rows of one file each.
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
std::vector<Api> collective_api();
std::vector<Api> weights_api();
std::vector<Api> data_api();
std::vector<Api> dataset_api();
std::vector<Api> tool_api();
std::vector<Api> watch_api();
std::vector<Api> record_api();
std::vector<Api> terminal_api();
std::vector<Api> survey_api();

// Sets all functions of `owner` in the table on top of the stack.
void install(lua_State* L, const std::string& owner);

// Makes the metatables of all classes: they have the methods and fields of the rows, and any other
// name is an error that proposes the nearest one.
void define_classes(lua_State* L);

}  // namespace orrery::lua
