// SPDX-License-Identifier: Apache-2.0
//
// What `orrery run` and `orrery plan` share: both run a script, to train or to plan.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "launch/launch_hosts.h"
#include "plugin/watchdog.h"

namespace orrery {

// What the command line has chosen.
struct Choice {
  int ranks = 1;
  std::string comm = ORRERY_DEFAULT_COMM;
  std::vector<std::string> kernels;
  int threads = 0;
  std::string pin = "cores";
  uint64_t link_speed = 0;
  bool profile = false, check_nan = false, fallback = false;
  int64_t verify = 0;
  std::string directory;  // of the run; "": it is not named
  std::string records;    // then the one that is made when there is something to record
  bool no_directory = false;
  std::vector<std::string> observe;  // NAME=OPTIONS
  std::string hosts, remote_shell = default_remote_shell();
  bool as_host = false;
  int restarts = 0, min_ranks = 0;
  bool help = false;                   // of the script
  std::vector<std::string> arguments;  // script, key=value...
};

// Adds the options that both have.
void add_common(CLI::App* command, Choice& choice);

// Throw Error, before any rank starts: for less than one rank; for a name that no plugin has.
void check_ranks(int ranks);
void check_names(const CLI::App& command, const Choice& choice);
// Warns of plugins that were found and cannot be used: another of the same name comes first, or the
// file is not trusted. The user may rely on such a plugin without having named it.
void tell_unused();
// The options of observers by name. Throws Error for a name that no plugin has.
std::map<std::string, std::string> observers_of(const Choice& choice);

// Makes the choice the process's (run/runtime.h).
void apply(const Choice& choice);
// Tells of plugins that do not come back, during its life.
Watchdog watch_plugins();
// Runs the script. Returns the exit code.
int run_chosen(const Choice& choice);
// Prints the script's arguments. What the script prints meanwhile is not shown.
void print_script_help(const Choice& choice);
// A stream of what is stdout now; what the script prints goes to the descriptor `other`.
std::FILE* keep_stdout(int other);

}  // namespace orrery
