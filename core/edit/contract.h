// SPDX-License-Identifier: Apache-2.0
//
// Checks what strategies state about each other: the features that they provide, require and
// conflict with (orr_strategy_info).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "edit/edit.h"

namespace orrery {

orr_strategy_info described(const StrategyUse& use);

// Checks a strategy's features against `provided`, which maps the features that strategies before
// it in the stack provide to their names, and adds its own features. Throws Error that names both
// strategies.
void check_contract(const StrategyUse& use, const orr_strategy_info& info,
                    const std::vector<StrategyUse>& stack,
                    std::map<std::string, std::string>& provided);

// An error about a wrong number of ranks begins with these words, behind the Lua line.
inline constexpr const char* ranks_left_over = "the strategies use";

}  // namespace orrery
