// SPDX-License-Identifier: Apache-2.0
//
// The editing calls of strategy/1 on a program, and the stack of strategies applied in order.
#pragma once

#include <orrery/strategy.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "partition/mesh.h"
#include "program/program.h"

namespace orrery {

// One entry of a strategy stack as the script wrote it.
struct StrategyUse {
  std::string name;
  std::map<std::string, Attr> options;
  std::string line;  // Lua file:line
  // A schedule of the script's own: the actions of one stage in order, as "F0", "B3", "W3", with
  // ":k" behind for the rank's k-th chunk. Empty: the strategy's own.
  std::function<std::vector<std::string>(int stage, int stages, int microbatches)> order = nullptr;
  // A strategy that the script or the Lua library defines; null: the plugin of this name.
  std::shared_ptr<const orr_strategy_api> script = nullptr;
};

// What the entry names: the script's own strategy or the plugin's, loaded now if need be.
const orr_strategy_api& strategy_of(const StrategyUse& use);

// The states that strategies keep: one of each name, over all programs of a run.
using StrategyStates = std::map<std::string, std::shared_ptr<State>>;

// Lets every strategy edit the program before it is differentiated, if it is one of a training
// step. Throws as apply_strategies does. REQUIRES: as there.
Asked apply_forward(Program& p, const std::vector<StrategyUse>& stack, StrategyStates& states,
                    bool training);

// Lets every strategy edit the differentiated program over `world` ranks, before its update is
// there; checks options, conflicts and that the mesh takes every rank. Throws Error with the Lua
// line of the strategy at fault. REQUIRES: `states` and `mesh` stay where they are until the step
// is complete.
void apply_strategies(Program& p, const std::vector<StrategyUse>& stack, int world,
                      StrategyStates& states, Mesh& mesh, bool training = true);
// Once the update is there: carries out what strategies have asked of the whole step, and lets
// those that work by a clock of their own, or drive the ranks, write their programs. The hooks are
// gone then.
void complete_step(Program& p, Mesh& mesh, int64_t microbatches, bool training,
                   const Measured& measured = {});
// Whether a strategy decides over the whole step, and needs the norm of all gradients.
bool decides_over_step(const Mesh& mesh);

// The actions of every coordinate of a pipeline that holds chunk c at chunk_at[c], as the strategy,
// or the script in its place, orders so many microbatches.
ActionTables tables_of(const StrategyUse& use, const std::vector<int>& chunk_at, int microbatches);

// What the strategy that caused an exchange says a rank sends in it; nothing if it has no formula
// of its own.
std::optional<uint64_t> predict_bytes(const StrategyUse& use, const orr_predict_query& query);

}  // namespace orrery
