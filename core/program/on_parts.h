// SPDX-License-Identifier: Apache-2.0
//
// Rules for ops on cut inputs. Most ways to run an op on parts of its inputs follow from its
// factors (Sharding): of a matmul [m, k] x [k, n] over two ranks, either input may be cut along m
// or n, and then the result is, or both along k, and then the results are summed. For other ways an
// op has a rule (OpDef::parts). The pass that makes each rank's part of a program, one mesh axis
// after the other (partition/cut/), calls the rules: it knows layouts and exchanges, but no op.
#pragma once

#include <vector>

#include "program/op.h"
#include "program/program.h"

namespace orrery {

// A way to carry out an op: how its inputs must lie, how its outputs come out.
struct Way {
  std::vector<Placement> in = {}, out = {};
  bool only = false;  // no other way is considered
  double cost = 0;    // bytes sent; the pass fills it in
};

// The interface of that pass for rules: one rank's part of a program on one axis, while it is being
// made.
class OnParts {
 public:
  OnParts(const Program& program, Member member, int all_chunks, bool axis_of_batch)
      : from(program),
        me(std::move(member)),
        over_batch(axis_of_batch),
        n_parts(all_chunks),
        n_chunks(all_chunks / me.ranks) {}
  virtual ~OnParts() = default;

  const Program& from;  // the whole program: `v` and `out` below are values of it
  Program p;            // the rank's program, to which a rule adds ops
  const Member me;
  const bool over_batch;  // it is a batch axis: an op of samples runs where these are
  // A sum over a cut dim has a summand for each chunk of the dim: n_parts in all, n_chunks a rank.
  const int n_parts, n_chunks;
  Member chunk(int i) const;  // this rank's chunk i, described as if each chunk were a rank
  // The coordinate that owns index i of n.
  int owner_of(size_t i, size_t n) const;

  // The layout of v. It is `whole` for all inputs of an op that needs whole inputs: its results
  // vary on the axis, or one rank owns some of its inputs.
  virtual const Placement& at(ValueId v) const = 0;
  // The value of p that stands for v, moved to the layout `to`, which is not a sum.
  virtual ValueId read(ValueId v, const Placement& to) = 0;
  // The part of v, which is cut, that belongs to this chunk.
  virtual ValueId read_chunk(ValueId v, const Member& part) = 0;
  // The sum over the ranks of x, a value of p, or its maximum ("max").
  virtual ValueId reduced(ValueId x, const char* fn = "sum") = 0;

  // Says what stands for an output: x of p, with the layout `how`; kNone if another rank owns it.
  virtual void become(ValueId out, ValueId x, Placement how) = 0;
  // The same for a sum over all ranks: the summands are those of this rank's chunks.
  virtual void become_sum(ValueId out, std::vector<ValueId> summands) = 0;
  // The same if the output is equal to v.
  virtual void become_same(ValueId out, ValueId v) = 0;
};

// An op's rule. Each function may be null.
struct PartsRule {
  // The ways other than with whole inputs and along factors, for inputs with the layouts `in`. The
  // pass takes the cheapest way, and appends the op on the parts; this function appends nothing.
  // Throws Error with the op's line if a cut dim does not divide.
  std::vector<Way> (*options)(const OnParts&, const Op&,
                              const std::vector<Placement>& in) = nullptr;
  // Carries the op out by other ops, says what stands for each output, and returns true. Returns
  // false, having done nothing, if the pass is to look for a way. All ranks must make the same
  // exchanges.
  bool (*run)(OnParts&, const Op&) = nullptr;
  // Adapts the attributes of a copy of the op to the types of its outputs, which are those of
  // `part`.
  void (*fit)(Op& copy, const Program& p, const Way& way, const Member& part) = nullptr;
  // Appends the op in its final form when all axes are done.
  void (*settle)(Program& p, Op op) = nullptr;
  // false: the op cannot be cut along its factors, which only give its relation to the batch.
  bool factors = true;
};

// The rule of ops that are linear in all their inputs together: summands pass through.
std::vector<Way> linear_options(const OnParts&, const Op&, const std::vector<Placement>& in);
extern const PartsRule linear_parts;
// A `fit` that sets the attribute ints "dims" to the output's dims.
void fit_dims(Op& copy, const Program& p, const Way&, const Member&);

// Converts indices into a dim of `extent` for the part that `owner` holds: `index` counts from
// `first`, and `inside` says whether the part has the index (kNone: it has all). Indices outside
// the dim count as inside the first or last part, so that kernels there report them.
struct PartIndex {
  ValueId index, inside;
};
PartIndex index_in_part(Program& p, ValueId index, int64_t extent, const Member& owner,
                        int64_t first);
// x where the mask is true, else 0; all of x if the mask is kNone.
ValueId masked(Program& p, ValueId mask, ValueId x);
// Reshapes [..] to [.., 1]; kNone stays kNone.
ValueId as_column(Program& p, ValueId rows);

}  // namespace orrery
