// SPDX-License-Identifier: Apache-2.0
//
// `orrery plugins`: lists the plugins that were found, on or off, with the reason.
#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/plugin_survey.h"
#include "lua/script.h"

namespace orrery {
namespace {

void print_table(const std::vector<PluginState>& states) {
  size_t name_width = 4;
  for (const PluginState& s : states) name_width = std::max(name_width, s.name.size());
  fmt::print("{:<9} {:<{}} {:<9} {:<4} {}\n", "KIND", "NAME", name_width, "VERSION", "", "PATH");
  for (const PluginState& s : states) {
    fmt::print("{:<9} {:<{}} {:<9} {:<4} {}\n", s.kind, s.name, name_width, s.version,
               s.on ? "on" : "off", s.path);
    if (!s.on) fmt::print("{:<9} {}\n", "", s.reason);
  }
  if (states.empty())
    fmt::print("no plugins found; set ORRERY_PLUGIN_PATH to the directories that hold them\n");
}

void print_scripted() {
  const std::vector<std::string> names = scripted_strategies();
  if (!names.empty())
    fmt::print("strategies in Lua: {}  {}\n", join(names, ", "),
               lua_library() + "/orrery/strategy");
}

}  // namespace

void add_plugins(CLI::App& app, int&) {
  CLI::App* command = app.add_subcommand(
      "plugins",
      "List the plugins found, on or off, with the reason.\n\n"
      "Examples:\n  orrery plugins\n  ORRERY_PLUGIN_PATH=$PWD/build orrery plugins --json\n");
  auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "print JSON");
  command->callback([json] {
    const std::vector<PluginState> states = survey_plugins();
    if (*json)
      fmt::print("{}\n", to_json(states).dump(2));
    else
      print_table(states), print_scripted();
  });
}

}  // namespace orrery
