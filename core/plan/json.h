// SPDX-License-Identifier: Apache-2.0
//
// What the answers of the planner are made of; docs/plan.md has the schema of a step's.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

namespace orrery {

using Json = nlohmann::json;

// Ranks as runs [first, last].
Json runs_json(const std::vector<int>& ranks);

}  // namespace orrery
