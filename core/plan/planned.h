// SPDX-License-Identifier: Apache-2.0
//
// The step of every kind of rank, planned and simulated, in numbers.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "edit/blueprint.h"
#include "plan/json.h"
#include "plan/timeline.h"

namespace orrery {

// Ranks whose plans are alike.
struct PlannedRanks {
  std::vector<int> ranks;
  uint64_t bytes = 0;  // at the peak
  // Of them, by category, and what the arena holds when it is fullest (plan/memory.h).
  std::map<std::string, uint64_t> parts, arena;
  std::map<std::string, uint64_t> sent;  // bytes a step of the first of these ranks, by axis
  Spent spent;
  // spent.compute by what binds a launch: "products", "arithmetic", "memory", "launches" (the time
  // before each).
  std::map<std::string, double> compute;
  std::map<std::string, double> product_flops;  // FLOPs of matrix products, by dtype
  Json details;
};

struct PlannedStep {
  std::vector<PlannedRanks> kinds;
  double seconds = 0;
  uint64_t peak() const;  // of the rank that holds most
};

// `describe` makes a kind's details, on any thread; null: none are made. Calls strategies and
// scripts for schedules. [main thread]
using DescribeRanks = std::function<Json(const RankPlan& plan, const std::vector<int>& ranks)>;
PlannedStep plan_step(const Blueprint& b, const std::vector<std::string>& kernels,
                      const Machine& machine, ShardSizes sizes = ShardSizes::exact,
                      const DescribeRanks& describe = nullptr);

// The FLOPs of the matrix products in a program's forward and backward.
double product_flops(const Program& program);
// The same as papers count them: attention with all its keys, whatever a mask hides, and backward
// as twice forward.
double convention_flops(const Program& program);
bool is_product(const Program& program, const Op& op);

}  // namespace orrery
