// SPDX-License-Identifier: Apache-2.0
//
// When the ops of a program run: among the ops of samples, or after all of these.
#pragma once

#include <map>
#include <vector>

#include "program/program.h"

namespace orrery {

struct Turns {
  std::vector<bool> live;  // by op (live_ops)
  // By op. `early`: it computes, from sums over the batch, what ops of samples read; it stays in
  // its place among them. `late`: it waits for all samples, whatever its phase. `own`: it works on
  // the sums of one microbatch, whose pieces leave the rank at once (CommOp::each).
  std::vector<char> early, late, own;
  std::map<ValueId, int64_t> group;  // of sums that samples read; those of a group travel together
};

Turns find_turns(const Program& p);

// Whether an op reads a value of this relation to the batch.
bool reads_any(const Program& p, const Op& op, Batch batch);

}  // namespace orrery
