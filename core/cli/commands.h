// SPDX-License-Identifier: Apache-2.0
//
// The subcommands. Each function adds one to the app. A subcommand runs inside CLI::App::parse and
// sets `exit_code`, the exit code of the process. Failures are thrown as orrery::Error.
#pragma once

#include <CLI/CLI.hpp>

namespace orrery {

void add_run(CLI::App& app, int& exit_code);
void add_repl(CLI::App& app, int& exit_code);
void add_plan(CLI::App& app, int& exit_code);
void add_plugins(CLI::App& app);
void add_doctor(CLI::App& app);
void add_check(CLI::App& app);
void add_top(CLI::App& app);
void add_report(CLI::App& app);
void add_new(CLI::App& app);
void add_stubs(CLI::App& app);

}  // namespace orrery
