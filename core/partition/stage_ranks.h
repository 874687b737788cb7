// SPDX-License-Identifier: Apache-2.0
//
// Which stages of a pipeline run each op, need each value and hold each state; all ranks find the
// same answer. A stage is a coordinate on Schedule::axis; it runs one or more chunks of the
// model (Op::stage). Three stages of a layer each, whose gradients g0, g1, g2 are clipped by their
// norm:
//
//   forward and backward             each op on the stage of its chunk
//   s0 = sum of squares of g0        on stage 0, where g0 is; the scalar is sent to the others
//   norm = sqrt(s0 + s1 + s2)        on all stages, because it reads scalars only
//   w0' = w0 - g0 / norm             on stage 0, which holds w0
//
// So an op on tensors of the update runs on every stage that needs its result, with the same bits
// everywhere; a parameter that two stages read (tied weights) is updated on both. In programs that
// update nothing, ops whose results nothing needs run nowhere.
#pragma once

#include <boost/dynamic_bitset.hpp>
#include <map>
#include <vector>

#include "partition/mesh.h"
#include "program/program.h"

namespace orrery {

using Ranks = boost::dynamic_bitset<>;  // stages: coordinates on Schedule::axis

// The stages that have elements of a state, as programs that were compiled before have placed it.
Ranks holders_before(const State& s, const Mesh& mesh);

class StageRanks {
 public:
  // REQUIRES: the program outlives this.
  StageRanks(const Program& p, const Mesh& mesh);

  const Ranks& run_at(size_t op) const { return run_at_[op]; }
  const Ranks& needed(ValueId v) const { return needed_[static_cast<size_t>(v)]; }
  // Whether some stage needs v and does not compute it, so that v must be sent.
  bool is_sent(ValueId v) const { return sent_[static_cast<size_t>(v)]; }
  const std::map<ValueId, Ranks>& holders() const { return holders_; }  // by state
  const std::vector<size_t>& readers(ValueId v) const { return readers_[static_cast<size_t>(v)]; }

  // Whether the op waits for all microbatches, whatever its phase (localize runs it late as well).
  bool is_late(size_t op) const { return late_[op]; }
  // Whether every stage runs this op of the update: it reads completed values and makes scalars
  // only.
  bool for_everyone(size_t op) const { return for_everyone_[op]; }
  bool scalar(ValueId v) const { return value(v).type.dims.empty(); }

 private:
  const Value& value(ValueId v) const { return from_.value(v); }
  bool all_scalars(const Op& op) const;
  // The stage of the op's chunk.
  size_t stage_of(const Op& op) const {
    return static_cast<size_t>(mesh_.schedule.chunk_at[static_cast<size_t>(op.stage)]);
  }
  Ranks only(size_t stage) const;
  const ValueId* partial_input(const Op& op) const;
  Ranks available(ValueId v) const;
  Ranks where_computable(ValueId v) const;
  size_t count_holders() const;
  void need(ValueId v, const Ranks& stages);
  void need_computed(ValueId v, const Ranks& stages);
  void place_batch_ops();
  void place_states();
  void place_all_of_update();
  void place_update_until_stable();
  void place_update();
  void place_scalars();
  void find_readers();

  const Program& from_;
  const Mesh& mesh_;
  Ranks everyone_, nobody_;  // all stages, and none
  std::vector<bool> live_;   // by op: something needs it
  std::vector<char> late_, sent_, for_everyone_;
  std::vector<Ranks> run_at_, needed_;
  std::map<ValueId, Ranks> holders_;
  std::vector<std::vector<size_t>> readers_;
};

}  // namespace orrery
