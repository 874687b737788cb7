// SPDX-License-Identifier: Apache-2.0
//
// The world that script chunks see: strict globals, sorted iteration, seeded random numbers, and a
// `require` that finds the same modules on every rank.
#pragma once

#include <string>
#include <vector>

#include "lua/layer.h"

namespace orrery::lua {

// A state with the standard libraries, the classes and `require`; chunks are text only.
// `script_directory` comes first in the search for modules.
void open_environment(lua_State* L, const std::string& script_directory);

// Compiles a chunk whose globals are strict; leaves the function on the stack. Throws Error.
void load_chunk(lua_State* L, const std::string& text, const std::string& chunk_name);

std::string read_script(const std::string& path);

// Replaces pairs and next in the table on top of the stack by ones that visit sorted keys.
void set_sorted_iteration(lua_State* L);
// Replaces require in the table on top of the stack.
void set_require(lua_State* L, const std::string& script_directory);

// The script's key=value arguments, for orrery.args.
void set_script_arguments(const std::vector<std::string>& words);
// Throws if there are arguments that the script has not asked for.
void refuse_unread_arguments();

void define_tensor_class(lua_State* L);
void define_host_class(lua_State* L);
void define_state_classes(lua_State* L);
void define_run_classes(lua_State* L);
void define_func_class(lua_State* L);
void define_draft_class(lua_State* L);
void define_world_class(lua_State* L);
void define_data_class(lua_State* L);
void define_tool_classes(lua_State* L);

// The error that the command line should end with 2 (usage) for.
constexpr int kUsageError = 1002;

}  // namespace orrery::lua
