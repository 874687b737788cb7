// SPDX-License-Identifier: Apache-2.0
//
// The periodic programs of a run (edit/asked.h): each runs after every so many steps, and its
// rounds take turns. [main thread]
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "run/run.h"
#include "run/run_states.h"
#include "run/variant.h"

namespace orrery {

class Rounds {
 public:
  // Compiles those of a step. Collective.
  void make(const Blueprint& step, const RunSpec& spec, int rank, RunStates& states);
  bool empty() const { return periodic_.empty(); }
  // Runs those that are due after this step, and counts what they move.
  void run_after(int64_t step, const RunSpec& spec, Counters& counters);
  // The varying states that are equal on all ranks now, because a round has run after this step.
  std::set<const State*> alike_after(int64_t step) const;

 private:
  struct Round {
    std::unique_ptr<Variant> program;
    uint64_t predicted;  // bytes that it sends
  };
  struct InTurns {
    int every;
    std::vector<Round> rounds;
    std::set<const State*> made_one = {};  // varying states that every round makes equal
  };
  std::vector<InTurns> periodic_;
};

}  // namespace orrery
