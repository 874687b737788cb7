// SPDX-License-Identifier: Apache-2.0
//
// Surveys the files of the registry, and calls each plugin's probe.
#include "cli/plugin_survey.h"

#include <algorithm>
#include <filesystem>
#include <tuple>

#include "base/error.h"
#include "cli/trial.h"
#include "lua/script.h"
#include "plugin/registry.h"

namespace orrery {
namespace {

constexpr uint32_t kinds[] = {ORR_KIND_KERNEL, ORR_KIND_COMM, ORR_KIND_STRATEGY, ORR_KIND_OBSERVER,
                              ORR_KIND_DEVICE, ORR_KIND_OP,   ORR_KIND_DATA};
constexpr int kTrialSeconds = 30;

// Loads the plugin's table and calls its probe. Returns why it cannot be used here; "" if it can.
std::string ask(uint32_t kind, const PluginFile& file) {
  const std::string name = file.descriptor.name;
  Registry& registry = Registry::get();
  char reason[256] = "no reason given";
  int32_t score = 1;
  switch (kind) {
    case ORR_KIND_KERNEL: {
      const orr_kernel_api& kernel = registry.kernel(name);
      score = kernel.probe(kernel.self, reason, sizeof reason);
      break;
    }
    case ORR_KIND_COMM: {
      const orr_comm_api& comm = registry.comm(file);
      orr_comm_caps caps{};
      caps.size = sizeof caps;
      score = comm.probe(comm.self, &caps, reason, sizeof reason);
      break;
    }
    case ORR_KIND_STRATEGY: registry.strategy(name); break;
    case ORR_KIND_OBSERVER: registry.observer(name); break;
    case ORR_KIND_OP: registry.op(name); break;
    case ORR_KIND_DATA: registry.data(name); break;
    default: registry.device(name);
  }
  return score > 0 ? "" : reason;
}

// The same, but a copy of this process tries it first: a damaged plugin may end the process.
std::string reason_off(uint32_t kind, const PluginFile& file) {
  const std::string end = end_of_trial([&] { ask(kind, file); }, kTrialSeconds);
  if (end.empty()) return ask(kind, file);
  return fmt::format("{}: loading it ended a process: {}; the file may be damaged: build it again",
                     file.path.string(), end);
}

PluginState state_of(const PluginFile& file, uint32_t kind) {
  const orr_plugin& d = file.descriptor;
  PluginState state{kind_name(kind), d.name, d.version, d.summary, file.path.string(), false, ""};
  try {
    state.reason = file.refusal.empty() ? reason_off(kind, file) : file.refusal;
  } catch (const Error& e) {
    state.reason = e.what();
  }
  state.on = state.reason.empty();
  return state;
}

}  // namespace

std::vector<PluginState> survey_plugins() {
  std::vector<PluginState> states;
  for (const PluginFile& file : Registry::get().files()) {
    if (!file.descriptor.magic)
      states.push_back({"?", "?", "?", "", file.path.string(), false, file.refusal});
    for (uint32_t kind : kinds)
      if (file.descriptor.kinds & kind) states.push_back(state_of(file, kind));
  }
  auto order = [](const PluginState& s) { return std::tuple(!s.on, s.kind, s.name, s.path); };
  std::sort(states.begin(), states.end(),
            [&](const PluginState& a, const PluginState& b) { return order(a) < order(b); });
  return states;
}

nlohmann::json to_json(const std::vector<PluginState>& states) {
  nlohmann::json list = nlohmann::json::array();
  for (const PluginState& s : states)
    list.push_back({{"kind", s.kind},
                    {"name", s.name},
                    {"version", s.version},
                    {"summary", s.summary},
                    {"path", s.path},
                    {"on", s.on},
                    {"reason", s.reason}});
  return list;
}

std::vector<std::string> scripted_strategies() {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry :
       std::filesystem::directory_iterator(lua_library() + "/orrery/strategy", error))
    names.push_back(entry.path().stem());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace orrery
