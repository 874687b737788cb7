// SPDX-License-Identifier: Apache-2.0
//
// What our programs have in common: results on stdout, log and errors on stderr, exit codes of
// types.h.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace orrery {

// main() around `run(argc, argv)`, which returns the exit code: standard streams that are closed
// are opened, an error that it throws is told as "error: ..." and becomes its code, and output that
// could not be written is an error.
int run_program(int argc, char** argv, int (*run)(int argc, char** argv));

// Parses the command line; what is chosen runs as a callback in the midst of it and sets
// `exit_code`. Returns the program's exit code.
int parse(CLI::App& app, int argc, char** argv, const int& exit_code);

}  // namespace orrery
