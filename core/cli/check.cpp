// SPDX-License-Identifier: Apache-2.0
//
// `orrery check`: starts the program that tests plugins (tests/conformance), which lies beside this
// one.
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "cli/commands.h"

namespace orrery {
namespace {

[[noreturn]] void become_judge(const std::vector<std::string>& arguments) {
  const std::filesystem::path judge =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / "orrery-check";
  std::vector<char*> argv = {const_cast<char*>("orrery check")};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  execv(judge.c_str(), argv.data());
  fail(ORR_UNAVAILABLE,
       "check: cannot start the judge of plugins, {} ({}): install or build it with orrery",
       judge.string(), std::strerror(errno));
}

}  // namespace

void add_check(CLI::App& app) {
  CLI::App* command = app.add_subcommand("check", "Judge a plugin by the conformance suite");
  command->set_help_flag();  // removes it: that program has its own
  command->prefix_command();
  command->callback([command] { become_judge(command->remaining()); });
}

}  // namespace orrery
