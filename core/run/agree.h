// SPDX-License-Identifier: Apache-2.0
//
// Checks that ranks agree before they go on together. [main thread]
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "run/variant.h"

namespace orrery {

// A digest of the logical program and its microbatches.
uint64_t program_digest(const Blueprint& b);

// Checks that all ranks have traced the same step, over states with the same initial values: a rank
// that differs would hang its peers, or train another model. Throws Error with `line` and the ranks
// that differ from rank 0, or the shapes of their batches where these differ. Collective.
void compare_across_ranks(const Blueprint& b, const BatchFields& batch, const std::string& line);

// What each rank contributes to a step that all take together, and the outcome.
struct StepAgreement {
  // The step's numbers; afterwards those of rank 0, on every rank. All must compute with the same:
  // mathematical libraries of hosts differ in the last bit, and a script may compute a number from
  // data that only its rank has.
  std::map<std::string, double> numbers;
  bool written = false;  // the script has written a state; afterwards: on any rank
  bool failed = false;   // this rank cannot go on; afterwards: any rank cannot
  bool saving = false;   // this rank writes its files of a checkpoint; afterwards: any rank does
  int64_t step = 0;      // step and seed must be the same on all ranks, and so must the batch
  uint64_t seed = 0;
};
// Carries that out by one exchange. Throws Error with `line` where the ranks differ. Collective.
void agree_on_step(StepAgreement& agreement, const BatchFields& batch, const std::string& line);

// If any rank has an error ("": none), throws the error of the lowest such rank on all ranks.
// `what` names for messages what the ranks are doing. Collective.
void fail_together(const std::string& error, const std::string& what, const std::string& line);

// The text that rank 0 gives. Collective.
std::string text_of_rank_0(const std::string& text, const std::string& what);

// The numbers of all ranks, rank after rank; every rank gives equally many. Collective.
std::vector<uint64_t> numbers_of_all(const std::vector<uint64_t>& mine, const std::string& what,
                                     const std::string& line);

}  // namespace orrery
