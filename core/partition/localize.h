// SPDX-License-Identifier: Apache-2.0
//
// From the logical program to one rank's: shapes shrink to the rank's microbatches, ops that sum
// over the batch learn which microbatches they hold, dead ops go, batch_mean and total become plain
// values. The result is a Program whose ops kernels can run, in execution order.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "partition/mesh.h"
#include "program/program.h"

namespace orrery {

struct Microbatches {
  int64_t total = 1;            // microbatches of the step
  int64_t first = 0, last = 1;  // this rank's
  int64_t rows = 0;             // samples per microbatch; the last microbatch may be padded
  bool one_by_one = false;      // one microbatch a call (partition/timetable.h), else all in one
  int64_t before =
      0;  // microbatches of others that come before all of these, where a rank works alone

  int64_t count() const { return last - first; }
  // A rank without microbatches has the shapes of one: its plan is cut out of a worker's
  // (lower/schedule/schedule.cpp).
  bool idle() const { return count() == 0; }
  int64_t in_shapes() const { return idle() ? 1 : count(); }
  int64_t calls() const { return one_by_one ? count() : 1; }
  int64_t first_row() const { return (before + first) * rows; }
  int64_t rows_per_call() const { return (one_by_one ? 1 : in_shapes()) * rows; }
};

// A sum over the batch to be completed over all ranks: `partial` holds this rank's tree nodes, one
// after another; `whole` is the total.
struct Total {
  ValueId partial = kNone, whole = kNone;
  ValueId logical = kNone;  // the partial's id in the logical program
  std::string axis;         // the ranks that complete it: the axes that deal the batch, or some of
                            // them; "": each of its own microbatches
  int64_t nodes = 1;        // that this rank exports
  // Sharded: which elements each rank of the axis gets, [begin, begin + count); members of a unit
  // travel together (partition/shard/units.h), the first uses of parameters, the second ones, ...
  Dims begin, count;
  int64_t unit = kNone, use = 0, member = 0;
  std::string origin;
  bool free = false;  // its memory serves others when the ranks have their pieces
  // Samples read it, so it is completed at once; those of equal number travel together. kNone: all
  // is computed before anyone reads it.
  int64_t early = kNone;
  // Another axis that deals the batch: the samples of all its ranks are here (Cut::dealt).
  std::string gathered = {};

  bool is_cut() const { return !count.empty(); }
};

// States in one piece of memory, one after another.
struct FlatBuffer {
  std::vector<std::shared_ptr<State>> states;
  std::vector<uint64_t> offsets;  // bytes
  uint64_t bytes = 0, room = 0;   // here; on the rank that holds most
  std::string axis;               // of those who exchange them

  bool seated() const;  // whether they have memory, and lie so
};

// What a program has of a state, and where it wants it kept.
struct Held {
  std::shared_ptr<State> state;
  Part part;
  Tier tier = Tier::device;
};

struct LocalProgram {
  Program program;
  std::vector<Total> totals;             // in the order in which the partials are complete
  std::vector<Held> parts;               // of all states that were named
  std::vector<FlatBuffer> flat_buffers;  // disjoint
  Microbatches microbatches;
};

// Whether peers wait for it, even if this rank does not need what comes of it.
bool is_awaited(const Op& op);

// The ops that results and new states are made of, and those that peers wait for with what they
// need.
std::vector<bool> live_ops(const Program& p);

// By value: whether it has the samples of all ranks of the axis over which samples travel; of a
// message int "gathered" = 1 says so.
std::vector<char> find_gathered(const Program& p);
// `dealt`: the microbatches of every rank of the batch axis (deal_microbatches).
LocalProgram localize(const Program& logical, const Microbatches& microbatches, const Mesh& mesh,
                      const std::vector<int64_t>& dealt, int rank);

}  // namespace orrery
