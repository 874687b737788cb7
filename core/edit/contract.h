// SPDX-License-Identifier: Apache-2.0
//
// What strategies say of each other: the words that they provide, require and conflict with
// (orr_strategy_info).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "edit/edit.h"

namespace orrery {

orr_strategy_info described(const StrategyUse& use);

// Holds a strategy's words against `provided`, which has those of the strategies before it in the
// stack with their names, and adds its own. Throws Error that names both strategies.
void check_contract(const StrategyUse& use, const orr_strategy_info& info,
                    const std::vector<StrategyUse>& stack,
                    std::map<std::string, std::string>& provided);

// An error about the number of ranks begins, behind its line, with these words.
inline constexpr const char* ranks_left_over = "the strategies use";

}  // namespace orrery
