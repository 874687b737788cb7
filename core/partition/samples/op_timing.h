// SPDX-License-Identifier: Apache-2.0
//
// When the ops of a step run: among the ops of samples, or after all of these. In
//
//   s = sum over the batch of x; m = batch_sum(s); y = x / m; dw = matmul(y, dy); g = total(dw)
//
// samples read m, so s must be complete before y is computed: the op that completes it is early.
// `total` waits for all samples: it is late. The others run in their places.
#pragma once

#include <map>
#include <vector>

#include "program/program.h"

namespace orrery {

struct OpTiming {
  std::vector<bool> live;  // by op (live_ops)
  // By op:
  // early: it computes, from sums over the batch, what ops of samples read, and runs among these.
  // late: it runs after all ops of samples, whatever its phase.
  // scattered: it works on sums of one microbatch, which are reduce-scattered after each microbatch
  //   (CommOp::each).
  std::vector<char> early, late, scattered;
  // Of sums that samples read: the number of a group, whose sums one exchange completes.
  std::map<ValueId, int64_t> group;
};

OpTiming find_timing(const Program& p);

// Whether an op reads a value of this relation to the batch.
bool reads_any(const Program& p, const Op& op, Batch batch);

}  // namespace orrery
