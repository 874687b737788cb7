// SPDX-License-Identifier: Apache-2.0
#include "edit/calls.h"

#include <algorithm>

#include <orrery/sdk/path.hpp>

#include "base/error.h"
#include "base/text.h"

namespace orrery {
namespace {

const Attr* option(const void* self, const char* name) {
  auto& options = static_cast<const StrategyUse*>(self)->options;
  auto at = options.find(name);
  return at == options.end() ? nullptr : &at->second;
}

// Throws Error for a text that is none of the option's choices.
void check_choice(const std::string& strategy, const char* name, const std::string& value,
                  const char* choices) {
  const std::vector<std::string> known = orr::path::cut(choices, ',');
  if (std::find(known.begin(), known.end(), value) != known.end()) return;
  fail(ORR_INVALID, "strategy.{}: there is no {} '{}'{}: give {}", strategy, name, value,
       did_you_mean(value, known), join(known, " or "));
}

}  // namespace

orr_options options_of(const StrategyUse& use) {
  orr_options o{};
  o.self = &use;
  o.integer = [](const void* self, const char* name, int64_t fallback) {
    const Attr* a = option(self, name);
    return a && std::holds_alternative<int64_t>(*a) ? std::get<int64_t>(*a) : fallback;
  };
  o.real = [](const void* self, const char* name, double fallback) {
    const Attr* a = option(self, name);
    if (a && std::holds_alternative<int64_t>(*a)) return static_cast<double>(std::get<int64_t>(*a));
    return a && std::holds_alternative<double>(*a) ? std::get<double>(*a) : fallback;
  };
  o.text = [](const void* self, const char* name, const char* fallback) {
    const Attr* a = option(self, name);
    return a && std::holds_alternative<std::string>(*a) ? std::get<std::string>(*a).c_str()
                                                        : fallback;
  };
  return o;
}

void check_options(const StrategyUse& use, const orr_strategy_info& info) {
  std::vector<std::string> known;
  for (int i = 0; i < info.n_options; ++i) known.push_back(info.options[i].name);
  for (auto& [name, value] : use.options) {
    bool found = false;
    for (int i = 0; i < info.n_options; ++i) {
      if (name != info.options[i].name) continue;
      found = true;
      bool text = std::holds_alternative<std::string>(value);
      bool whole = std::holds_alternative<int64_t>(value);
      int32_t want = info.options[i].type;
      if (!want) continue;
      if ((want == ORR_ATTR_TEXT) != text || (want == ORR_ATTR_INT && !whole))
        fail(ORR_INVALID, "strategy.{}: option '{}' must be {}", use.name, name,
             want == ORR_ATTR_TEXT  ? "a string"
             : want == ORR_ATTR_INT ? "an integer"
                                    : "a number");
      if (text && info.choices && info.choices[i])
        check_choice(use.name, info.options[i].name, std::get<std::string>(value), info.choices[i]);
    }
    if (!found)
      fail(ORR_INVALID, "strategy.{}: unknown option '{}'{}; it has {}", use.name, name,
           did_you_mean(name, known), known.empty() ? "none" : join(known, ", "));
  }
}

}  // namespace orrery
