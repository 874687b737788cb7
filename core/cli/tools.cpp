// SPDX-License-Identifier: Apache-2.0
//
// The subcommands that train and plan nothing. Here is what each takes; what it does is written in
// Lua (scripts/orrery/cli and scripts/orrery/watch), but for `orrery check`, which is a program of
// its own (tests/conformance), beside this one.
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/commands.h"
#include "launch/wire.h"
#include "lua/script.h"

namespace orrery {
namespace {

// A subcommand while it is declared. What a user gives reaches its module as a table, by the names
// of options without dashes.
class Tool {
 public:
  Tool(CLI::App& app, const std::string& name, const std::string& module, const std::string& about)
      : command_(app.add_subcommand(name, about)) {
    command_->callback([module, given = given_] { run_tool(module, *given); });
  }
  template <class T = std::string>
  CLI::Option* option(const std::string& names, const std::string& about) {
    const std::string key = names.substr(names.find_last_of("-") + 1);
    const auto take = [key, given = given_](const T& value) { (*given)[key] = value; };
    return command_->add_option_function<T>(names, take, about);
  }
  void flag(const std::string& name, const std::string& about) {
    const auto take = [key = name.substr(2), given = given_](int64_t) { (*given)[key] = true; };
    command_->add_flag_function(name, take, about);
  }

 private:
  CLI::App* command_;
  std::shared_ptr<nlohmann::json> given_ =
      std::make_shared<nlohmann::json>(nlohmann::json::object());
};

[[noreturn]] void become_judge(const std::vector<std::string>& arguments) {
  const std::filesystem::path judge =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / "orrery-check";
  std::vector<char*> argv = {const_cast<char*>("orrery check")};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  execv(judge.c_str(), argv.data());
  fail(ORR_UNAVAILABLE,
       "check: cannot start the judge of plugins, {} ({}): install it, or build it: "
       "ninja -C {} orrery-check",
       judge.string(), std::strerror(errno), judge.parent_path().string());
}

}  // namespace

void add_plugins(CLI::App& app) {
  Tool tool(app, "plugins", "cli.plugins", R"(List the plugins found, on or off, with the reason.

Examples:
  orrery plugins
  ORRERY_PLUGIN_PATH=$PWD/build orrery plugins --json
)");
  tool.flag("--json", "print JSON");
}

void add_top(CLI::App& app) {
  Tool tool(app, "top", "watch.top", R"(Show a run in the terminal while it goes on
Examples:
  orrery top runs/gpt
  orrery top --once runs/gpt)");
  tool.option("directory", "Directory that the run was given by --dir")->required();
  tool.flag("--once", "Print one screen");
  tool.option("--svg", "Write one screen into this file, as a picture");
}

void add_report(CLI::App& app) {
  Tool tool(app, "report", "watch.report", R"(Write a page of HTML about runs
Examples:
  orrery report -o gpt.html runs/gpt
  orrery report runs/first runs/second > both.html)");
  tool.option("-o,--output", "File to write to, in place of standard output");
  tool.option<std::vector<std::string>>("directory",
                                        "Directories that the runs were given by --dir")
      ->required();
}

void add_new(CLI::App& app) {
  Tool tool(app, "new", "cli.new", R"(Start a plugin of your own, or tell an editor about scripts
Examples:
  orrery new plugin comm mine
  orrery new plugin kernel swift --c
  orrery new editor)");
  tool.option("what", "plugin, or editor: a .luarc.json here, for Lua language servers")
      ->required()
      ->check(CLI::IsMember({"plugin", "editor"}));
  tool.option("kind", "Of a plugin: kernel, device, comm, strategy, observer, op or data");
  tool.option("name", "Of a plugin: what users will call it");
  tool.flag("--c", "in plain C instead of C++");
}

void add_check(CLI::App& app) {
  CLI::App* command = app.add_subcommand("check", "Judge a plugin by the conformance suite");
  command->set_help_flag();  // removes it: that program has its own
  command->prefix_command();
  command->callback([command] { become_judge(command->remaining()); });
}

void add_doctor(CLI::App& app) {
  Tool tool(app, "doctor", "cli.doctor",
            R"(Report what this machine offers and which plugins work on it.

Examples:
  orrery doctor
  orrery doctor -n 4
  orrery doctor --json
)");
  tool.flag("--json", "print JSON");
  tool.option<int>("-n,--ranks", "Show how this many ranks would share the cores")
      ->check(CLI::Range(1, wire::max_ranks));
}

void add_stubs(CLI::App& app) {
  Tool tool(app, "stubs", "cli.stubs", R"(Write what scripts can call, for Lua editors and to read
Example:
  orrery stubs types)");
  tool.option("directory", "Where to write orrery.lua, api.md and from-pytorch.md")->required();
}

}  // namespace orrery
