// SPDX-License-Identifier: Apache-2.0
//
// A planned step as text and as hashes, which are equal where two builds of Orrery plan alike: what
// kernels and backends are asked for, and where everything lies. Nothing in it is private to the
// lowering, and names of lines and modules are left out.
#pragma once

#include <string>

#include "edit/blueprint.h"
#include "lower/rank_plan.h"
#include "plan/json.h"

namespace orrery {

// One line for each item.
struct PlanText {
  std::string launches;   // the schedule: launches as plugins get them, and when exchanges begin
  std::string exchanges;  // as backends get them, in the order in which they begin
  std::string memory;     // offsets, bytes and lifetimes of all storages
  std::string states;     // which part of each state the rank holds, and in which memory tier
};
PlanText text_of(const RankPlan& plan);

// The object with a hash of the whole ("digest") and of each text of each kind of rank ("kinds"),
// programs that run after every so many steps ("periodic") among them.
Json digest_json(const PlanSource& source, const Blueprint& b);

}  // namespace orrery
