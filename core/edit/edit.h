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

#include "edit/asked.h"
#include "partition/mesh.h"
#include "partition/stage.h"
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

// The table of the strategy: the script's own, or the plugin's, which is loaded now if need be.
const orr_strategy_api& strategy_of(const StrategyUse& use);

// How the parameters of a step are cut over an axis; those that are whole have no value.
using KnownCuts = std::map<std::string, std::optional<PartsAsked>>;

// What the strategies of a run keep from program to program.
struct StrategyStates {
  std::map<std::string, std::shared_ptr<State>> by_name;
  std::map<int, ChunkModules> chunks;     // modules of balanced chunks, by the number of chunks
  std::map<std::string, KnownCuts> cuts;  // of the training step, by axis
};

// Lets every strategy edit the program before it is differentiated (`training`) or evaluated.
// Throws and requires the same as apply_strategies.
void apply_forward(Program& p, const std::vector<StrategyUse>& stack, StrategyStates& states,
                   Asked& asked, bool training);

// Lets every strategy edit the differentiated program for `world` ranks, before its update is
// written. Checks options and conflicts, and that the mesh uses every rank. Throws Error with the
// Lua line of the strategy at fault. REQUIRES: `states`, `mesh` and `asked` keep their addresses
// until the step is complete.
void apply_strategies(Program& p, const std::vector<StrategyUse>& stack, int world,
                      StrategyStates& states, Mesh& mesh, Asked& asked, bool training = true);
// Finishes the step once its update is written: calls the strategies' hooks on the whole step,
// checks what they ask of the ranks, and has strategies write their periodic programs and their
// drivers' programs. Removes the hooks from `asked`.
void complete_step(Program& p, Mesh& mesh, Asked& asked, int64_t microbatches, bool training,
                   const Measured& measured = {});
// Whether a strategy decides whether the whole step counts. It then needs the norm of all
// gradients.
bool decides_over_step(const Asked& asked);

// The actions of every coordinate of a pipeline, whose coordinate chunk_at[c] holds chunk c, for so
// many microbatches. The strategy orders them, or the script (StrategyUse::order).
ActionTables tables_of(const StrategyUse& use, const std::vector<int>& chunk_at, int microbatches);

// The bytes that a rank sends in an exchange by the formula of the strategy that caused it; nothing
// if the strategy has no formula.
std::optional<uint64_t> predict_bytes(const StrategyUse& use, const orr_predict_query& query);

}  // namespace orrery
