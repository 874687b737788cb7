// SPDX-License-Identifier: Apache-2.0
//
// Carries out partition/cut_program.h for one axis: it walks over the ops and makes each rank's.
#pragma once

#include <optional>
#include <set>
#include <tuple>

#include "partition/cut/move.h"
#include "partition/cut_program.h"
#include "program/on_parts.h"

namespace orrery {

// The dim of a tensor that belongs to a factor (Sharding); kNone if none does.
int dim_of(const std::vector<int>& factors, int factor);

class CutPass : public OnParts {
 public:
  // `asked`: placing.values, by their ids in `program`. `outer`: into how many parts axes that come
  // later cut the dim that sums are scattered over.
  CutPass(const Program& program, const Mesh& mesh, const Placing& placing,
          std::map<ValueId, PartsAsked> asked, int outer, int rank);
  CutProgram run();

  const Placement& at(ValueId v) const override { return on_wholes_ ? kWhole : cut(v); }
  ValueId read(ValueId v, const Placement& to) override;
  ValueId read_chunk(ValueId v, const Member& part) override { return read_part(v, cut(v), part); }
  ValueId reduced(ValueId x, const char* fn) override { return all_reduce(p, x, me, fn); }
  void become(ValueId v, ValueId x, Placement cut) override;
  void become_sum(ValueId v, std::vector<ValueId> summands) override;
  void become_same(ValueId out, ValueId v) override;

 private:
  // -- the walk (pass.cpp)
  void declare_values();
  void declare_state(ValueId v);
  void place_given();
  void place_asked(ValueId v);
  Dims segments_of(ValueId param, int dim) const;
  void translate(const Op& op);
  void emit(const Op& op, const Way& way);
  void append_fitted(const Op& op, const Way& way, const Member& part, Op copy);
  void remark(const Op& op, const Way& way);
  void finish();

  // A move is made once for all ops that read the same layout, but a gathered sequence is gathered
  // again in backward instead of being kept.
  using Moved = std::tuple<ValueId, int, int, Dims, int>;  // value, kind, dim, segments, phase
  Moved move_of(ValueId v, const Placement& to) const;
  // For a v made by an op of one input: if that input has been moved already, and the op makes v in
  // the layout `to` of it, that way of the op and the moved input; else kNone.
  std::pair<Way, ValueId> moved_before(ValueId v, const Placement& to) const;
  ValueId rename_moved(ValueId v, const Placement& to);
  bool may_read(ValueId x) const;
  ValueId read_result(ValueId v);
  // Says where ops belong that are added from now on: where the maker of a value does, for one.
  void go_to(Phase phase, int32_t stage);
  void go_to_maker(const Program& program, ValueId v);
  // The same if ops that are added now may read what is added there.
  void go_to_maker_of_sum(ValueId v);
  bool is_random(ValueId v) const;
  bool is_moved(ValueId v, const Placement& to) const {
    return moved_.count(move_of(v, to)) || moved_before(v, to).second != kNone;
  }
  ValueId known(ValueId v) const;
  const Placement& cut(ValueId v) const { return at_[static_cast<size_t>(v)]; }
  // Notes in a value of the rank's program how it lies over this axis. Samples of a rank's own are
  // no placement: the batch's says so.
  void note(ValueId x, const Placement& how);
  ValueId noted(ValueId x, const Placement& how) { return note(x, how), x; }
  // How v lies if no strategy asks for another layout: samples may be dealt over the axis.
  Placement usual(ValueId v) const {
    return over_batch && from.value(v).batch() == Batch::sharded ? Placement::of_samples()
                                                                 : Placement{};
  }

  // -- sums: this rank has a summand for each of its chunks (sums.cpp)
  bool by_blocks(const Op& op);
  ValueId read_part(ValueId v, const Placement& to, const Member& part);
  std::vector<ValueId> summands(ValueId v);

  // -- options (options.cpp)
  Way choose(const Op& op) const;
  // The ways that the op's own rule offers (PartsRule::options).
  std::vector<Way> options_of(const Op& op, const std::vector<Placement>& in) const;
  Way whole(const Op& op) const;
  void try_factors(const Op& op, Way& best) const;
  std::optional<Way> along(const Op& op, const Sharding& s, int factor) const;
  bool keeps_samples(const Op& op, const Way& way) const;
  std::optional<Dims> segments_along(const Op& op, const Sharding& s, int factor) const;
  bool stays(const Op& op, ValueId v) const;
  bool opens(const Op& op, const Sharding& s, int factor) const;
  bool scatters(const Op& op, ValueId v) const;
  double bytes(ValueId v) const;
  bool is_too_fine(const Placement& cut) const;
  bool is_summed(ValueId v) const;
  bool is_barred(const Op& op, const Way& way) const;
  double cost_of(const Op& op, const Way& way) const;
  bool keeps_whole_sum(const Op& op, const Way& way) const;
  bool keeps_parts_of_sum(const Op& op, const Way& way) const;
  void consider(const Op& op, std::optional<Way> way, Way& best) const;

  // -- values of one rank alone (owned.cpp)
  int owner_among(const Op& op) const;
  void run_at_owner(const Op& op, int owner);
  ValueId from_owner(ValueId v);
  bool alone_ = false;  // some ops run on one rank only

  static inline const Placement kWhole{};
  int32_t stage_ = 0;       // of the op at hand
  bool on_wholes_ = false;  // at() says `whole` of every input of the op at hand
  const Mesh& mesh_;
  const Placing& ask_;
  const Name axis_;  // me.axis
  const std::map<ValueId, PartsAsked> asked_;
  const int outer_;
  CutProgram out_;
  std::vector<Placement> at_;               // by ValueId of the logical program
  std::vector<ValueId> here_;               // the value in the new program, which lies as at_ says
  std::vector<std::vector<OpId>> readers_;  // forward ops, by ValueId
  std::map<std::string, ValueId> params_;
  std::map<Moved, ValueId> moved_;
  std::map<ValueId, std::vector<ValueId>> summands_;  // of values that are sums
  std::vector<OpId> ops_;  // by OpId of the logical program: its op in the new one
};

}  // namespace orrery
