// SPDX-License-Identifier: Apache-2.0
//
// Lists every plugin that was found, and whether it can be used here, by its own `probe`.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace orrery {

struct PluginState {
  std::string kind, name, version, summary, path;
  bool on = false;
  std::string reason;  // why it is off; "" if it is on
};

// One entry per plugin and kind, first those that are on, then by kind and name. Loads the plugins
// that can be loaded without ending the process. [main thread]
std::vector<PluginState> survey_plugins();

nlohmann::json to_json(const std::vector<PluginState>& states);

// The names of the Lua library's strategies, sorted. Scripts may define more (strategy.define).
std::vector<std::string> scripted_strategies();

}  // namespace orrery
