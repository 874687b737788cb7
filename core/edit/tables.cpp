// SPDX-License-Identifier: Apache-2.0
//
// Asks a strategy, or the script, for the order of a pipeline's actions.
#include <algorithm>
#include <cstdio>

#include "base/error.h"
#include "edit/calls.h"
#include "plugin/host.h"
#include "plugin/registry.h"

namespace orrery {
namespace {

std::vector<Action> plugin_actions(const StrategyUse& use, int stage, int stages,
                                   int microbatches) {
  const orr_strategy_api& api = strategy_of(use);
  orr_options options = options_of(use);
  int32_t n = 0;
  std::vector<orr_cell> actions;
  do {
    actions.resize(static_cast<size_t>(n));
    check(api.schedule(api.self, &options, stage, stages, microbatches, actions.data(),
                       static_cast<int32_t>(actions.size()), &n),
          "strategy." + use.name);
  } while (n > static_cast<int32_t>(actions.size()));
  std::vector<Action> found;
  for (const orr_cell& c : actions) {
    if (c.kind < ORR_CELL_FORWARD || c.kind > ORR_CELL_WEIGHT)
      fail(ORR_INVALID, "strategy.{}: there is no kind of cell {}", use.name, c.kind);
    found.push_back({static_cast<Segment>(c.kind), c.chunk, c.leaf});
  }
  return found;
}

// The action that a text such as "F3:1" of the script stands for; `mine` are the stage's chunks.
Action script_action(const StrategyUse& use, const std::string& text,
                     const std::vector<int>& mine) {
  static const std::string kinds = "FBW";
  size_t kind = text.empty() ? std::string::npos : kinds.find(text[0]);
  int microbatch = -1, k = 0;
  char rest = 0;
  int read = std::sscanf(text.c_str() + (text.empty() ? 0 : 1), "%d:%d%c", &microbatch, &k, &rest);
  if (kind == std::string::npos || read < 1 || read > 2 || microbatch < 0 || k < 0 ||
      k >= static_cast<int>(mine.size()))
    fail(ORR_INVALID,
         "strategy.{}: the schedule function returned '{}'; a cell is F, B or W, a microbatch from "
         "0, "
         "and \":1\" for the second chunk of a stage: \"F0\", \"B3:1\"",
         use.name, text);
  return {static_cast<Segment>(static_cast<int>(Segment::forward) + static_cast<int>(kind)),
          mine[static_cast<size_t>(k)], microbatch};
}

}  // namespace

ActionTables tables_of(const StrategyUse& use, const std::vector<int>& chunk_at, int microbatches) {
  int stages = *std::max_element(chunk_at.begin(), chunk_at.end()) + 1;
  ActionTables tables;
  for (int stage = 0; stage < stages; ++stage) {
    if (!use.order) {
      tables.push_back(plugin_actions(use, stage, stages, microbatches));
      continue;
    }
    std::vector<int> mine;
    for (size_t c = 0; c < chunk_at.size(); ++c)
      if (chunk_at[c] == stage) mine.push_back(static_cast<int>(c));
    tables.emplace_back();
    for (const std::string& text : use.order(stage, stages, microbatches))
      tables.back().push_back(script_action(use, text, mine));
  }
  return tables;
}

}  // namespace orrery
