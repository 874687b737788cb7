// SPDX-License-Identifier: Apache-2.0
//
// Runs a user's script, and what else the command line needs of Lua.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace orrery {

// Runs the script with its `key=value` arguments in this process, which is one rank. Prints an
// error to stderr once. Returns the exit code: 0 also for a script that ends because its plan was
// printed. [main thread]
int run_script(const std::string& path, const std::vector<std::string>& args);

// The text of `orrery run SCRIPT --help`: the arguments that the script declares before it would
// train. Throws Error. REQUIRES: plan_only (run/runtime.h). [main thread]
std::string script_help(const std::string& path, const std::vector<std::string>& args);

// Runs the function that the module `orrery.NAME` of the Lua library returns, with these options.
void run_tool(const std::string& name, const nlohmann::json& options);

// Reads lines from standard input and runs them (`orrery repl`). Returns the exit code. [main
// thread]
int run_repl();

// The directory of the Lua library: beside the installed program, or that of the source tree.
std::string lua_library();

}  // namespace orrery
