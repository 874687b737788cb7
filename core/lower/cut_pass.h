// SPDX-License-Identifier: Apache-2.0
//
// The walk behind lower/cut_program.h for one axis, op by op. Inside of lower/ only.
#pragma once

#include <optional>
#include <set>
#include <tuple>

#include "lower/cut_program.h"
#include "program/op.h"

namespace orrery {

// A way to carry out an op: how its inputs must lie, how its outputs come out.
struct Way {
  std::vector<Cut> in, out;
  double cost = 0;  // bytes sent
};

// The dim of a tensor that runs over a factor (Sharding); kNone if none does.
int dim_of(const std::vector<int>& factors, int factor);

// Once all axes are done: keys that a part of the queries does not see are left out
// (cut_attention.cpp).
void leave_out_keys(Program& p);

class CutPass {
 public:
  // `asked`: of placing.values, by their ids in `from`.
  CutPass(const Program& from, const Mesh& mesh, const Placing& placing,
          std::map<ValueId, PartsAsked> asked, int rank);
  CutProgram run();

 private:
  // -- the walk (cut_program.cpp)
  void declare_values();
  void declare_state(ValueId v);
  void place_given();
  void place_asked(ValueId v);
  Dims segments_of(ValueId param, int dim) const;
  void translate(const Op& op);
  void emit(const Op& op, const Way& way);
  void append_fitted(const Op& op, const Way& way, const Member& part, Op copy);
  void fit_attributes(const Op& op, const Way& way, const Member& part, Op& copy);
  void remark(const Op& op, const Way& way);
  void finish();

  // v as it is in the new program, moved to `to`, which is no sum, if it lies otherwise. One move
  // serves all who want the same; a gathered sequence is gathered again in backward instead of
  // being kept.
  ValueId read(ValueId v, const Cut& to);
  // Of a reshaped value: what it was made of, where that has been moved to a layout that is `to`
  // when reshaped; else kNone.
  ValueId moved_before(ValueId v, const Cut& to) const;
  bool is_moved(ValueId v, const Cut& to) const {
    return moved_.count(move_of(v, to)) || moved_before(v, to) != kNone;
  }
  ValueId known(ValueId v) const;
  const Cut& cut(ValueId v) const { return at_[static_cast<size_t>(v)]; }
  // How v lies where nobody asks for anything: samples may be dealt over the axis.
  Cut usual(ValueId v) const {
    return deals_ && from_.value(v).batch == Batch::sharded ? Cut::of_samples() : Cut{};
  }
  // Declares that the logical value v is x of the new program.
  void become(ValueId v, ValueId x, Cut cut);

  // -- sums, of one summand for each chunk that this rank has (cut_sums.cpp)
  Member chunk(int i) const;  // what the chunk would be if it were a rank
  bool by_blocks(const Op& op);
  ValueId read_part(ValueId v, const Cut& to, const Member& part);
  std::vector<ValueId> summands(ValueId v);
  void become_sum(ValueId v, std::vector<ValueId> summands);

  // -- ways (cut_ways.cpp)
  Way choose(const Op& op) const;
  Way whole(const Op& op) const;
  void try_factors(const Op& op, Way& best) const;
  std::optional<Way> along(const Op& op, const Sharding& s, int factor) const;
  bool keeps_samples(const Op& op, const Way& way) const;
  std::optional<Dims> segments_along(const Op& op, const Sharding& s, int factor) const;
  std::optional<Way> summing(const Op& op) const;   // linear ops pass summands on
  std::optional<Way> renaming(const Op& op) const;  // split, concat and reshape along a cut dim
  std::optional<Way> by_heads(const Op& op) const;
  bool stays(const Op& op, ValueId v) const;
  bool opens(const Op& op, const Sharding& s, int factor) const;
  bool scatters(const Op& op, ValueId v) const;
  double bytes(ValueId v) const;
  double cost_of(const Op& op, const Way& way) const;
  void consider(const Op& op, std::optional<Way> way, Way& best) const;

  // -- ops that work on rows of a cut table or on cut classes (cut_vocabulary.cpp)
  bool vocabulary(const Op& op);
  void gather_rows(const Op& op);
  void scatter_rows(const Op& op);
  void cross_entropy(const Op& op);
  void cross_entropy_grad(const Op& op);
  struct Rows {
    ValueId index, inside;  // counted from this rank's first; whether it is this rank's
  };
  // `first`: the index that counts as 0.
  Rows rows_of(ValueId index, int64_t extent, const Member& owner, int64_t first);

  // -- attention on a part of the queries (cut_attention.cpp)
  std::optional<Way> by_queries(const Op& op) const;
  void tell_queries(const Op& op, const Member& part, Op& copy) const;

  // -- values that vary over the axis (cut_rename.cpp)
  bool varying(const Op& op);
  bool take_own(const Op& op);
  bool gather_own(const Op& op);

  // -- values of one rank alone (cut_owned.cpp)
  bool owned(const Op& op);
  int owner_of(size_t i, size_t n) const;
  bool split_to_owners(const Op& op);
  bool concat_owned(const Op& op);
  void run_at_owner(const Op& op, int owner);
  ValueId from_owner(ValueId v);
  bool alone_ = false;  // ops run on one rank and not on others

  const Program& from_;
  const Mesh& mesh_;
  const Placing& ask_;
  const std::map<ValueId, PartsAsked> asked_;
  Member me_;
  bool deals_;  // the axis deals the batch
  int parts_;   // that a cut dim must be able to have: chunks of sums, at least one a rank
  int chunks_;  // this rank's
  CutProgram out_;
  Program& to_;
  std::vector<Cut> at_;                     // by ValueId of the logical program
  std::vector<ValueId> here_;               // its value in the new program, which lies as at_ says
  std::vector<std::vector<OpId>> readers_;  // forward ops, by ValueId
  std::map<std::string, ValueId> params_;
  using Moved = std::tuple<ValueId, int, int, Dims, int>;  // value, kind, dim, segments, phase
  Moved move_of(ValueId v, const Cut& to) const;
  std::map<Moved, ValueId> moved_;
  std::map<ValueId, std::vector<ValueId>> summands_;  // of values that are sums
  std::vector<OpId> ops_;  // by OpId of the logical program: its op in the new one
};

}  // namespace orrery
