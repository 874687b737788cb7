// SPDX-License-Identifier: Apache-2.0
//
// When the ops of a program run: while there are samples, or after all of them.
#pragma once

#include <map>
#include <vector>

#include "program/program.h"

namespace orrery {

struct Turns {
  std::vector<bool> live;  // by op (live_ops)
  // Whether it leads from sums over the batch to what samples read of them, in its place; whether
  // it waits for all samples, whatever phase wrote it.
  std::vector<char> early, late;
  std::map<ValueId, int64_t> group;  // of sums that samples read: which travel together
};

Turns find_turns(const Program& p);

// Whether an op reads a value of this relation to the batch.
bool reads_any(const Program& p, const Op& op, Batch batch);

}  // namespace orrery
