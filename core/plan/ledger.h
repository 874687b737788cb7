// SPDX-License-Identifier: Apache-2.0
//
// Counts bytes per parameter by role, from the storages of a plan: "4.00 parameter + 2.00 gradient
// + ...".
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "lower/rank_plan.h"

namespace orrery {

struct Ledger {
  int64_t parameters = 0;                               // elements that the rank holds
  std::vector<std::pair<std::string, uint64_t>> roles;  // roles with their bytes, without zeros
};

// The memory that training needs for the rank's parameters: the parameters, copies that ops compute
// with, gradients (with all tree nodes that wait for others), optimizer state.
Ledger ledger_of(const RankPlan& plan);

// One line; "" without parameters.
std::string ledger_text(const RankPlan& plan);

}  // namespace orrery
