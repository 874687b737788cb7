// SPDX-License-Identifier: Apache-2.0
#include "edit/contract.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "edit/calls.h"
#include "plugin/host.h"
#include "plugin/registry.h"

namespace orrery {
namespace {

// Splits a list such as "sharded state, stages" into its features.
std::vector<std::string> features_of(const char* text) {
  std::vector<std::string> found;
  std::string feature;
  for (const char* c = text ? text : "";; ++c) {
    if (*c && *c != ',') {
      if (*c != ' ' || !feature.empty()) feature += *c;
      continue;
    }
    if (!feature.empty()) found.push_back(feature);
    feature.clear();
    if (!*c) return found;
  }
}

bool has(const std::vector<std::string>& features, const std::string& feature) {
  return std::find(features.begin(), features.end(), feature) != features.end();
}

[[noreturn]] void refuse(const std::string& name, const std::string& feature,
                         const std::string& by) {
  fail(ORR_INVALID, "strategy.{} cannot join a stack that already has {}, from strategy.{}", name,
       feature, by);
}

void check_list_of_options(const std::string& name, const orr_strategy_info& info) {
  edit::check_list("strategy." + name + ": describe", "options", info.n_options, info.options);
  for (int32_t i = 0; i < info.n_options; ++i)
    if (!info.options[i].name)
      fail(ORR_INVALID, "strategy.{}: describe: option {} has no name", name, i + 1);
}

// The installed strategies that provide the feature and none of the conflicts. Strategies that
// cannot be loaded are left out.
std::vector<std::string> providers(const std::string& feature,
                                   const std::vector<std::string>& conflicts) {
  std::vector<std::string> found;
  for (const std::string& name : Registry::get().names(ORR_KIND_STRATEGY)) {
    std::vector<std::string> features;
    try {
      features = features_of(described({name, {}, ""}).provides);
    } catch (const Error&) {
      continue;
    }
    const auto conflict = [&](const std::string& w) { return has(conflicts, w); };
    if (has(features, feature) && std::none_of(features.begin(), features.end(), conflict))
      found.push_back("strategy." + name);
  }
  return found;
}

// Throws the error for a required feature that no strategy before this one provides. A strategy
// after it may provide the feature, and may conflict as well.
[[noreturn]] void miss(const StrategyUse& use, const std::string& feature,
                       const std::vector<std::string>& conflicts,
                       const std::vector<StrategyUse>& stack) {
  std::string remedy;
  for (const StrategyUse& other : stack) {
    const std::vector<std::string> features = features_of(described(other).provides);
    if (!has(features, feature)) continue;
    for (const std::string& conflict : conflicts)
      if (has(features, conflict)) refuse(use.name, conflict, other.name);
    remedy = ": put strategy." + other.name + " before it";
  }
  if (const auto names = providers(feature, conflicts); remedy.empty() && !names.empty())
    remedy = ": add " + join(names, " or ") + " before it";
  fail(ORR_INVALID, "strategy.{} needs a strategy before it that provides {}{}", use.name, feature,
       remedy);
}

}  // namespace

const orr_strategy_api& strategy_of(const StrategyUse& use) {
  return use.script ? *use.script : Registry::get().strategy(use.name);
}

orr_strategy_info described(const StrategyUse& use) {
  const orr_strategy_api& api = strategy_of(use);
  orr_strategy_info info{};
  info.size = sizeof info;
  check(api.describe(api.self, &info), "strategy." + use.name + ": describe");
  check_list_of_options(use.name, info);
  return info;
}

void check_contract(const StrategyUse& use, const orr_strategy_info& info,
                    const std::vector<StrategyUse>& stack,
                    std::map<std::string, std::string>& provided) {
  const std::vector<std::string> conflicts = features_of(info.conflicts);
  for (const std::string& feature : conflicts)
    if (auto by = provided.find(feature); by != provided.end())
      refuse(use.name, feature, by->second);
  for (const std::string& feature : features_of(info.requires_))
    if (!provided.count(feature)) miss(use, feature, conflicts, stack);
  for (const std::string& feature : features_of(info.provides)) provided.emplace(feature, use.name);
}

}  // namespace orrery
