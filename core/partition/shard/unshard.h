// SPDX-License-Identifier: Apache-2.0
//
// Gatherings that a program writes itself, as the op `unshard` (docs/ops.md).
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "partition/shard/on_shards.h"

namespace orrery {

class Unshard {
 public:
  // `once` is by op (needed_once). REQUIRES: the other arguments outlive this. Throws Error, with
  // the line of the op, where what it is to gather cannot be computed on pieces.
  Unshard(const Program& from, const Mesh& mesh, int rank, const std::vector<Unit>& units,
          const std::vector<bool>& once);

  // Whether this op of forward or backward is an `unshard`, or is computed on shards for one.
  bool takes(OpId op) const;
  // Appends to `to`, which has the values of the program, what the op `unshard` needs: the first of
  // its group the whole exchange. Ops that are computed on pieces are appended where they are
  // needed. REQUIRES: takes(op).
  void emit(OpId op, Program& to);
  // What op reads in place of v: where v is gathered for each microbatch and the op runs once
  // (needed_once), what was gathered once beside it.
  ValueId read_by(OpId op, ValueId v) const;

 private:
  struct Group {
    Phase phase;
    bool each;  // again for each microbatch
    int32_t stage;
    int64_t number;  // that the program gives
    OpId alone;      // the op, if it gives none
    std::string axis;
    int32_t dtype;
    auto operator<=>(const Group&) const = default;
  };

  const Op& op_at(OpId op) const { return from_.ops()[static_cast<size_t>(op)]; }
  void find_groups();
  bool is_each(const Op& unshard) const;
  void gather(const std::vector<OpId>& ops, bool each, Program& to);
  Group group_of(OpId op) const;
  void check(const Op& op) const;
  ValueId shard_of(ValueId v, Program& to);
  ValueId compute(const Op& op, const ShardValue& result, Range mine, Program& to);
  std::pair<size_t, size_t> place_of(OpId unshard) const;
  Range mine(const ShardValue& v) const;
  Placement lies(const ShardValue& v) const { return units_[v.unit].lies(); }

  const Program& from_;
  const Mesh& mesh_;
  int rank_;
  const std::vector<Unit>& units_;
  const std::vector<bool>& once_;
  OnShards on_shards_;
  std::map<Group, std::vector<OpId>> groups_;
  std::map<ValueId, ValueId> once_value_;  // read_by, by what is gathered for each microbatch
  // By value and phase: this rank's piece; kNone if it has no element.
  std::map<std::pair<ValueId, Phase>, ValueId> shards_;
};

}  // namespace orrery
