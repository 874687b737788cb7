// SPDX-License-Identifier: Apache-2.0
//
// Every plugin found and whether it can be used here, asked of the plugin itself by `probe`.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace orrery {

struct PluginState {
  std::string kind, name, version, summary, path;
  bool on = false;
  std::string reason;  // why it is off, "" if on
};

// One entry per plugin and kind, on ones first, then by kind and name. Loads what can be loaded
// without ending the process. [main thread]
std::vector<PluginState> survey_plugins();

nlohmann::json to_json(const std::vector<PluginState>& states);

// Names of the Lua library's own strategies, sorted; scripts add theirs by strategy.define.
std::vector<std::string> scripted_strategies();

}  // namespace orrery
