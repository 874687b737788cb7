// SPDX-License-Identifier: Apache-2.0
//
// `orrery top` and `orrery report`: runs as their directories tell of them. Both are written in Lua
// (scripts/orrery/watch).
#include "cli/commands.h"
#include "lua/script.h"

namespace orrery {

void add_top(CLI::App& app) {
  CLI::App* command = app.add_subcommand("top", R"(Show a run in the terminal while it goes on
Examples:
  orrery top runs/gpt
  orrery top --once runs/gpt)");
  auto path = std::make_shared<std::string>(), svg = std::make_shared<std::string>();
  auto once = std::make_shared<bool>(false);
  command->add_option("directory", *path, "Directory that the run was given by --dir")->required();
  command->add_flag("--once", *once, "Print one screen");
  command->add_option("--svg", *svg, "Write one screen into this file, as a picture");
  command->callback([=] { run_tool("watch.top", {*path, *once ? "yes" : "no", *svg}); });
}

void add_report(CLI::App& app) {
  CLI::App* command = app.add_subcommand("report", R"(Write a page of HTML about runs
Examples:
  orrery report -o gpt.html runs/gpt
  orrery report runs/first runs/second > both.html)");
  auto arguments = std::make_shared<std::vector<std::string>>();
  auto file = std::make_shared<std::string>();
  command->add_option("-o,--output", *file, "File to write to, in place of standard output");
  command->add_option("directory", *arguments, "Directories that the runs were given by --dir")
      ->required();
  command->callback([=] {
    arguments->insert(arguments->begin(), *file);
    run_tool("watch.report", *arguments);
  });
}

}  // namespace orrery
