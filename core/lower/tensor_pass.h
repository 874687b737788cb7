// SPDX-License-Identifier: Apache-2.0
//
// The walk behind lower/tensor.h, op by op. Inside of lower/ only.
#pragma once

#include <optional>
#include <set>
#include <tuple>

#include "lower/tensor.h"
#include "program/op.h"

namespace orrery {

// A way to carry out an op: how its inputs must lie, how its outputs come out.
struct Way {
  std::vector<Cut> in, out;
  double cost = 0;  // bytes sent
};

class TensorPass {
 public:
  TensorPass(const Program& from, const Spread& spread, int rank);
  TensorProgram run();

 private:
  // -- the walk (tensor.cpp)
  void declare_values();
  void declare_state(ValueId v);
  bool keeps_width(const Op& op, ValueId x, int dim) const;
  Dims segments_of(ValueId param, int dim) const;
  void translate(const Op& op);
  void emit(const Op& op, const Way& way);
  void fit_attributes(const Op& op, const Way& way, Op& copy);
  void remark(const Op& op, const Way& way);
  void finish();

  // v as it is in the new program, moved to `to` if it lies otherwise. One move serves all who want
  // the same; a gathered sequence is gathered again in backward instead of being kept.
  ValueId read(ValueId v, const Cut& to);
  ValueId known(ValueId v) const;
  const Cut& cut(ValueId v) const { return at_[static_cast<size_t>(v)]; }
  // Declares that the logical value v is x of the new program.
  void become(ValueId v, ValueId x, Cut cut);

  // -- ways (tensor_ways.cpp)
  Way choose(const Op& op) const;
  Way whole(const Op& op) const;
  void try_factors(const Op& op, Way& best) const;
  std::optional<Way> along(const Op& op, const Sharding& s, int factor) const;
  std::optional<Dims> segments_along(const Op& op, const Sharding& s, int factor) const;
  std::optional<Way> summing(const Op& op) const;   // linear ops pass summands on
  std::optional<Way> renaming(const Op& op) const;  // split, concat and reshape along a cut dim
  std::optional<Way> by_heads(const Op& op) const;
  bool scatters(const Op& op, ValueId v) const;
  double bytes(ValueId v) const;
  double cost_of(const Op& op, const Way& way) const;
  void consider(const Op& op, std::optional<Way> way, Way& best) const;

  // -- ops that work on rows of a cut table or on cut classes (tensor_vocabulary.cpp)
  bool vocabulary(const Op& op);
  void gather_rows(const Op& op);
  void scatter_rows(const Op& op);
  void cross_entropy(const Op& op);
  void cross_entropy_grad(const Op& op);
  struct Owned {
    ValueId index, inside;  // counted from this rank's first; whether it is this rank's
  };
  Owned owned(ValueId index, int64_t extent);

  const Program& from_;
  const Spread& spread_;
  Member me_;
  TensorProgram out_;
  Program& to_;
  std::vector<Cut> at_;        // by ValueId of the logical program
  std::vector<ValueId> here_;  // its value in the new program, which lies as at_ says
  std::vector<std::vector<OpId>> readers_;  // forward ops, by ValueId
  std::map<ValueId, Dims> segments_;        // of cut parameters
  std::map<ValueId, ValueId> like_;  // state -> the parameter that it goes with
  using Moved = std::tuple<ValueId, int, int, Dims, int>;  // value, kind, dim, segments, phase
  Moved move_of(ValueId v, const Cut& to) const;
  std::map<Moved, ValueId> moved_;
  std::vector<OpId> ops_;      // by OpId of the logical program: its op in the new one
  Phase phase_ = Phase::forward;
};

}  // namespace orrery
