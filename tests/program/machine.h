// SPDX-License-Identifier: Apache-2.0
//
// Runs a program on chosen kernels in this process, as any rank of an imagined world: sums over the
// batch stay the tree nodes that the rank's leaves complete, for the test to combine by hand.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "partition/localize.h"
#include "program/program.h"
#include "run/executor.h"

namespace program_test {

using orrery::Dims;
using orrery::kNone;
using orrery::Microbatches;
using orrery::Program;
using orrery::Type;
using orrery::ValueId;

// Elements of any dtype, row-major.
using Values = std::vector<double>;
using Named = std::map<std::string, Values>;

class Machine {
 public:
  // `leaves`: what the rank holds. Outputs must own their memory (see `give`).
  Machine(const Program& logical, const std::vector<std::string>& kernels,
          const Microbatches& microbatches = {}, bool fuse = true);

  // Inputs, batch fields (the rank's rows) and scalars by name -> outputs by name. The output of a
  // `total` is the rank's nodes, one after another. $seed and $step need not be given.
  Named run(const Named& inputs);

  const orrery::RankPlan& plan() const { return executor_->plan(); }

 private:
  std::unique_ptr<orrery::Executor> executor_;
};

// Declares the output `name`: a copy of v that owns its memory, or the total of a sum over the
// batch.
void give(Program& p, std::string name, ValueId v);

// The rows [first, first + n) of dim `dim` of x.
Values part(const Values& x, const Dims& dims, int dim, int64_t first, int64_t n);

// The tree nodes of all ranks, of `total` leaves, combined to the whole; `dtype` rounds each sum.
class NodeTree {
 public:
  NodeTree(int32_t dtype, int64_t total) : dtype_(dtype), total_(total) {}
  void add(int64_t lo, int64_t hi, const Values& nodes);
  Values whole() const { return node(0, total_); }

 private:
  Values node(int64_t first, int64_t n) const;

  int32_t dtype_;
  int64_t total_;
  std::map<std::pair<int64_t, int64_t>, Values> nodes_;
};

}  // namespace program_test
