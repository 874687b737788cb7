// SPDX-License-Identifier: Apache-2.0
//
// Makes one rank's program of the logical one: shapes shrink to the rank's microbatches, ops that
// sum over the batch learn which microbatches they get, dead ops are removed, and batch_mean and
// total become plain values. Kernels can run the ops of the result, in their order.
//
// Example: 6 samples in 3 microbatches on 3 ranks. Of x f32[6,4] each rank has f32[2,4]. The
// gradient matmul(x, dy) f32[4,5] is one node of a tree of 3 on each rank, and a Total says that
// the ranks complete it together: the exchange that adds the nodes, an all-reduce, is made of it
// (lower/kernels/bucket.cpp).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "partition/mesh.h"
#include "program/program.h"

namespace orrery {

struct Microbatches {
  int64_t total = 1;            // microbatches of the step
  int64_t first = 0, last = 1;  // this rank has [first, last)
  int64_t rows = 0;             // samples per microbatch; the last microbatch may be padded
  bool one_by_one = false;      // one microbatch a call (partition/timetable.h), else all in one
  int64_t before = 0;  // where a rank works alone: microbatches of other ranks ahead of `first`

  int64_t count() const { return last - first; }
  // A rank without microbatches has the shapes of a rank with one: its plan is that plan without
  // the work on samples (lower/schedule/schedule.cpp).
  bool idle() const { return count() == 0; }
  int64_t in_shapes() const { return idle() ? 1 : count(); }
  int64_t calls() const { return one_by_one ? count() : 1; }
  int64_t first_row() const { return (before + first) * rows; }
  int64_t rows_per_call() const { return (one_by_one ? 1 : in_shapes()) * rows; }
};

// A sum over the batch that ranks complete together: `partial` holds this rank's tree nodes, one
// after another; `whole` is the completed sum. It is all-reduced, or reduce-scattered where
// training state is sharded.
struct Total {
  ValueId partial = kNone, whole = kNone;
  ValueId logical = kNone;  // the partial's id in the logical program
  std::string axis;         // the ranks that complete it: all batch axes, or some of them; "": each
                            // rank completes the sum of its own microbatches
  int64_t nodes = 1;        // how many tree nodes this rank exports
  std::optional<SumShards> pieces = {};  // where training state is sharded
  // Where ops of samples read the sum: the number of its group, whose sums travel together, before
  // those ops run. kNone: the sum is read after all samples are done.
  int64_t early = kNone;
  // A batch axis that is not in `axis`, because this rank has the samples of all its ranks; "":
  // none.
  std::string gathered = {};
  // `partial` is this rank's piece of a sum that the ranks have added for each microbatch already
  // (CommOp::each). Only the microbatches, and replicas, are left to be added.
  bool in_pieces = false;

  bool is_cut() const { return pieces.has_value(); }
};

// States that lie in one block of memory, one after another, so that one exchange moves them all.
struct FlatBuffer {
  std::vector<std::shared_ptr<State>> states;
  std::vector<uint64_t> offsets;  // bytes
  uint64_t bytes = 0, room = 0;   // bytes of this rank, and of the rank that holds most
  std::string axis;               // the ranks that exchange them

  bool is_laid_out() const;  // whether the states have memory, laid out in this way
};

// The part of a state that a program works on, and the memory tier that it wants it in.
struct StatePart {
  std::shared_ptr<State> state;
  Part part;
  Tier tier = Tier::device;
};

struct LocalProgram {
  Program program;
  std::vector<Total> totals;             // in the order in which the partials are complete
  std::vector<StatePart> parts;          // one for each state that the program names
  std::vector<FlatBuffer> flat_buffers;  // disjoint
  Microbatches microbatches;
};

// Whether peers wait for this op, so that it must run even if this rank does not need its result.
bool is_awaited(const Op& op);

// By op: whether a result or a new state is computed from it, or it is_awaited, or an awaited op
// needs it.
std::vector<bool> live_ops(const Program& p);

// By value: whether this rank has the samples of all ranks of `axis` for it, because values that
// are cut over that batch axis exchange samples. "": there is no such axis.
std::vector<char> find_gathered(const Program& p, const std::string& axis);

// The program of `rank`. `first_microbatch` is by rank of the batch axis (assign_microbatches).
LocalProgram localize(const Program& logical, const Microbatches& microbatches, const Mesh& mesh,
                      const std::vector<int64_t>& first_microbatch, int rank);

}  // namespace orrery
