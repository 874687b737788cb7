// SPDX-License-Identifier: Apache-2.0
//
// Which coordinates of the pipeline run each op, need each value and hold each state. All ranks
// find the same answer. Forward and backward follow Op::stage. In the update, an op of tensors runs
// wherever its result is needed, with the same bits everywhere. A sum that makes a scalar of a
// tensor (the norm of a gradient) runs once, where the tensor is, and the scalar travels. Ops that
// nothing needs run nowhere in programs that update nothing.
#pragma once

#include <boost/dynamic_bitset.hpp>
#include <map>
#include <vector>

#include "partition/mesh.h"
#include "program/program.h"

namespace orrery {

using Ranks = boost::dynamic_bitset<>;  // coordinates on the axis that deals the stages

// Those that have elements of a state in the programs that were compiled before.
Ranks holders_before(const State& s, const Mesh& mesh);

class StageRanks {
 public:
  // REQUIRES: the program outlives this.
  StageRanks(const Program& p, const Mesh& mesh);

  const Ranks& run_at(size_t op) const { return run_at_[op]; }
  const Ranks& needed(ValueId v) const { return needed_[static_cast<size_t>(v)]; }
  // Whether a coordinate needs v and does not compute it.
  bool travels(ValueId v) const { return travels_[static_cast<size_t>(v)]; }
  const std::map<ValueId, Ranks>& holders() const { return holders_; }  // of states
  const std::vector<size_t>& readers(ValueId v) const { return readers_[static_cast<size_t>(v)]; }

  // Whether the op waits for all microbatches, whatever its phase; localize runs it late as well.
  bool is_late(size_t op) const { return late_[op]; }
  // Whether every coordinate runs this op of the update: it reads completed values and makes
  // scalars only.
  bool for_everyone(size_t op) const { return for_everyone_[op]; }
  bool scalar(ValueId v) const { return value(v).type.dims.empty(); }

 private:
  const Value& value(ValueId v) const { return from_.value(v); }
  bool all_scalars(const Op& op) const;
  size_t at(const Op& op) const {
    return static_cast<size_t>(mesh_.schedule.chunk_at[static_cast<size_t>(op.stage)]);
  }
  Ranks only(size_t rank) const;
  const ValueId* partial_input(const Op& op) const;
  Ranks available(ValueId v) const;
  Ranks at_hand(ValueId v) const;
  size_t held() const;  // states, on all ranks
  void need(ValueId v, const Ranks& ranks);
  void need_chain(ValueId v, const Ranks& ranks);
  void find_early();
  void find_held();
  void settle_update();
  void place_update();
  void place_scalars();
  void find_readers();

  const Program& from_;
  const Mesh& mesh_;
  Ranks everyone_, nobody_;
  std::vector<bool> live_;  // by op: something needs it
  std::vector<char> late_, travels_, for_everyone_;
  std::vector<Ranks> run_at_, needed_;
  std::map<ValueId, Ranks> holders_;
  std::vector<std::vector<size_t>> readers_;
};

}  // namespace orrery
