// SPDX-License-Identifier: Apache-2.0
//
// The program `orrery`.
#include <orrery/plugin.h>

#include <algorithm>

#include "base/config.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/program.h"
#include "plan/planner.h"

namespace orrery {
namespace {

constexpr const char* overview = R"(Examples:
  orrery run -n 2 examples/gpt.lua steps=100
  orrery plan -n 512 examples/gpt2.lua
  orrery plugins
  orrery doctor

Orrery trains models that Lua scripts describe, on any number of ranks.)";

// Lists subcommands with the first line of their description; their own --help has all of it.
class Formatter : public CLI::Formatter {
 public:
  std::string make_subcommand(const CLI::App* command) const override {
    const std::string text = command->get_description();
    return fmt::format("  {:<9} {}\n", command->get_name(), text.substr(0, text.find('\n')));
  }
};

void check_subcommand(const CLI::App& app, const std::string& given) {
  std::vector<std::string> known;
  for (const CLI::App* command : app.get_subcommands({})) known.push_back(command->get_name());
  if (given.starts_with("-") || std::count(known.begin(), known.end(), given)) return;
  fail(ORR_INVALID, "there is no subcommand '{}'{}; there are: {}", given,
       did_you_mean(given, known), join(known, ", "));
}

int run(int argc, char** argv) {
  CLI::App app(overview, "orrery");
  app.formatter(std::make_shared<Formatter>());
  app.set_version_flag("--version", std::string("orrery " ORRERY_VERSION ", plugin bootstrap ") +
                                        std::to_string(ORR_BOOTSTRAP) + ", " + ORR_BUILD_TEXT);
  app.require_subcommand(1);
  use_planner();
  int exit_code = ORR_OK;
  add_run(app, exit_code);
  add_repl(app, exit_code);
  add_plan(app, exit_code);
  add_plugins(app);
  add_top(app);
  add_report(app);
  add_new(app);
  add_check(app);
  add_doctor(app);
  add_stubs(app);
  static char help[] = "--help";  // what people type first is a word
  if (argc == 2 && std::string_view(argv[1]) == "help") argv[1] = help;
  if (argc > 1) check_subcommand(app, argv[1]);
  return parse(app, argc, argv, exit_code);
}

}  // namespace
}  // namespace orrery

int main(int argc, char** argv) { return orrery::run_program(argc, argv, orrery::run); }
