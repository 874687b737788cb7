// SPDX-License-Identifier: Apache-2.0
//
// The editing calls of strategy/1 on a program, and the stack of strategies applied in order.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "lower/mesh.h"
#include "program/program.h"

namespace orrery {

// One entry of a strategy stack as the script wrote it.
struct StrategyUse {
  std::string name;
  std::map<std::string, Attr> options;
  std::string line;  // Lua file:line
  // A schedule of the script's own: the cells of one stage in order, as "F0", "B3", "W3", with ":k"
  // behind for the rank's k-th chunk. Empty: the strategy's own.
  std::function<std::vector<std::string>(int stage, int stages, int leaves)> order = nullptr;
};

// Lets every strategy edit the differentiated program over `world` ranks; checks options, conflicts
// and that the mesh takes every rank. Throws Error with the Lua line of the strategy at fault.
Spread apply_strategies(Program& p, const std::vector<StrategyUse>& stack, int world);

// The cells of every coordinate of a pipeline that holds chunk c at chunk_at[c], as the strategy, or the
// script in its place, orders `leaves` leaves.
std::vector<std::vector<Cell>> tables_of(const StrategyUse& use, const std::vector<int>& chunk_at, int leaves);

// What the strategies say this rank sends per step, for comparison with the counted plan.
struct PredictRequest {
  int rank = 0;
  uint64_t reduced_elements = 0, reduced_bytes = 0;
  int64_t nodes = 1, total_nodes = 1;
};
uint64_t predict_bytes(const std::vector<StrategyUse>& stack, const Spread& spread,
                       const PredictRequest& request);

}  // namespace orrery
