// SPDX-License-Identifier: Apache-2.0
//
// How an op runs on parts of its inputs that its factors (Sharding) do not say, as a rule beside
// the op (OpDef::parts). A pass gives each rank its share of a program, one mesh axis after the
// other, and asks the rules; it knows layouts and exchanges, and no op.
#pragma once

#include <vector>

#include "program/cut.h"
#include "program/op.h"

namespace orrery {

// A way to carry out an op: how its inputs must lie, how its outputs come out.
struct Way {
  std::vector<Cut> in = {}, out = {};
  bool only = false;  // no other way is considered
  double cost = 0;    // bytes sent; the pass fills it in
};

// The share of one rank on one axis, as it is made.
class OnParts {
 public:
  OnParts(const Program& program, Member member, int all_chunks, bool deals_batch)
      : from(program),
        me(std::move(member)),
        deals(deals_batch),
        n_parts(all_chunks),
        n_chunks(all_chunks / me.ranks) {}
  virtual ~OnParts() = default;

  const Program& from;  // what is shared out: `v` and `out` below are values of it
  Program p;            // the rank's program, to which a rule adds ops
  const Member me;
  const bool deals;  // the axis deals the batch: an op of samples stays with them
  // A sum over a cut dim has a summand for each of n_parts chunks of the dim, n_chunks a rank.
  const int n_parts, n_chunks;
  Member chunk(int i) const;  // what this rank's chunk i would be if it were a rank
  // The coordinate that holds index i of n, whatever the number of ranks that chunks are dealt to.
  int owner_of(size_t i, size_t n) const;

  // How v lies. All inputs of an op that runs on whole ones are said to be whole: where its results
  // are each rank's own on the axis, or some of its inputs are one rank's alone.
  virtual const Cut& at(ValueId v) const = 0;
  // v as it is in p, moved to `to`, which is no sum, if it lies otherwise.
  virtual ValueId read(ValueId v, const Cut& to) = 0;
  // Of v, which lies in parts, what this chunk has of them.
  virtual ValueId read_chunk(ValueId v, const Member& part) = 0;
  // x, a value of p, summed over the ranks, or their largest taken ("max").
  virtual ValueId reduced(ValueId x, const char* fn = "sum") = 0;

  // What becomes of an output: x of p, which lies as `how`; kNone where another rank owns it.
  virtual void become(ValueId out, ValueId x, Cut how) = 0;
  // The sum of these, one from each of this rank's chunks, and of the other ranks'.
  virtual void become_sum(ValueId out, std::vector<ValueId> summands) = 0;
  // The same as v.
  virtual void become_same(ValueId out, ValueId v) = 0;
};

// Each may be null.
struct PartsRule {
  // Ways besides whole inputs and parts along a factor, for inputs that lie as `in`; the pass takes
  // the cheapest, and appends the op on the shares. Adds nothing. Throws Error with the op's line
  // where what is cut does not divide.
  std::vector<Way> (*options)(const OnParts&, const Op&, const std::vector<Cut>& in) = nullptr;
  // Carries the op out by ops of its own, tells what becomes of each output, and returns true;
  // false: it has done nothing, and the pass looks for a way. All ranks make the same exchanges.
  bool (*run)(OnParts&, const Op&) = nullptr;
  // Lets attributes of a copy of the op follow its outputs' types, which are those of `part`.
  void (*fit)(Op& copy, const Program& p, const Way& way, const Member& part) = nullptr;
  // Appends the op when all axes are done, such as without what its attributes say is not read.
  void (*settle)(Program& p, Op op) = nullptr;
  bool factors = true;  // false: it cannot be cut along factors, which serve the batch alone
};

// Of ops that are linear in all their inputs together: summands pass through.
std::vector<Way> linear_options(const OnParts&, const Op&, const std::vector<Cut>& in);
extern const PartsRule linear_parts;
// Ints "dims" are the output's.
void fit_dims(Op& copy, const Program& p, const Way&, const Member&);

// Indices into a dim of `extent`, seen from the part that `owner` holds: counted from `first`, and
// whether the part has them; `inside` is kNone if it has all. The outermost parts have what is
// outside of the dim, too, so that their kernels refuse it.
struct PartIndex {
  ValueId index, inside;
};
PartIndex index_in_part(Program& p, ValueId index, int64_t extent, const Member& owner,
                        int64_t first);
// x where the mask holds, else 0; all of x if there is no mask.
ValueId masked(Program& p, ValueId mask, ValueId x);
// [..] as [.., 1]; kNone of kNone.
ValueId as_column(Program& p, ValueId rows);

}  // namespace orrery
