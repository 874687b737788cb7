// SPDX-License-Identifier: Apache-2.0
//
// Sorts the tensors of an update by the sharded parameter that they belong to: its summed gradient,
// its optimizer states and every tensor that is computed from them. All of them lie in pieces as
// the parameter does, so that ops on them run on pieces. In
//
//   g = total(sum); v = 0.9 v + g; w = w - 0.1 v; norm = sum of squares of g
//
// g, v and w belong to w. `norm` belongs to no parameter: it is a scalar, which all ranks have.
#pragma once

#include <string>
#include <vector>

#include "partition/shard/units.h"
#include "program/program.h"

namespace orrery {

struct ShardedParam {
  size_t unit = 0, member = 0;  // the parameter is units[unit].params[member]
  const Dims* cuts = nullptr;   // shard i is its elements [cuts[i], cuts[i + 1])
};

class ShardedParams {
 public:
  // `axis`: the axis that gradients are summed over. REQUIRES: program and units outlive this.
  ShardedParams(const Program& p, const std::vector<Unit>& units, const std::string& axis);

  // The parameter that a tensor belongs to; null for scalars and everything else.
  const ShardedParam* of(ValueId v) const;
  // The parameter whose pieces this op works on; null if all ranks run it on whole tensors.
  const ShardedParam* of(const Op& op) const { return op.out.empty() ? nullptr : of(op.out[0]); }
  // Whether all ranks compute this op of the update from whole tensors, which are gathered for it.
  // It does so if it makes a scalar of a tensor, cannot work on pieces, reads tensors that lie in
  // different pieces, has Op::reads_whole, or is `unshard`.
  bool gathers(const Op& op) const { return gathers_[static_cast<size_t>(&op - p_.ops().data())]; }

 private:
  void find_states(const std::vector<Unit>& units);
  void find_sources(const std::string& axis);
  void add_remaining_states(const std::vector<int>& becomes);
  bool follow(const Op& op);

  const Program& p_;
  std::vector<ShardedParam> params_;
  std::vector<int> param_of_;  // by value: an index in params_, or kNone
  std::vector<char> gathers_;  // by op
};

}  // namespace orrery
