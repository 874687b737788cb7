// SPDX-License-Identifier: Apache-2.0
//
// The frame that our programs share: results on stdout, log and errors on stderr, the exit codes of
// types.h.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace orrery {

// The body of main(): calls run(argc, argv), which returns the exit code. Opens standard streams
// that are closed. Prints an error that `run` throws as "error: ...", and returns its code. Output
// that could not be written is an error too.
int run_program(int argc, char** argv, int (*run)(int argc, char** argv));

// Parses the command line. The chosen subcommand runs as a callback of the parser and sets
// `exit_code`. Returns the program's exit code.
int parse(CLI::App& app, int argc, char** argv, const int& exit_code);

}  // namespace orrery
