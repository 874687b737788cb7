// SPDX-License-Identifier: Apache-2.0
//
// Sorts the tensors of an update by parameter. A parameter's chain is its summed gradient, its
// optimizer states and every tensor computed from them; all lie in pieces as the parameter does.
// Chains meet in scalars, which all ranks have, and in ops that read gathered tensors.
#pragma once

#include <string>
#include <vector>

#include "partition/shard/units.h"
#include "program/program.h"

namespace orrery {

struct Chain {
  size_t unit = 0, member = 0;  // which parameter: units[unit].params[member]
  const Dims* cuts = nullptr;   // shard i is its elements [cuts[i], cuts[i + 1])
};

class Chains {
 public:
  // `axis`: the axis that gradients are summed over. REQUIRES: program and units outlive this.
  Chains(const Program& p, const std::vector<Unit>& units, const std::string& axis);

  // The chain that a tensor belongs to; null for scalars and everything else.
  const Chain* of(ValueId v) const;
  // The chain whose ranks compute this op; null if all do.
  const Chain* of(const Op& op) const { return op.out.empty() ? nullptr : of(op.out[0]); }
  // Whether all ranks compute this op of the update from whole tensors, which are gathered for it.
  // It does so if it makes a scalar of a tensor, cannot work on pieces, reads tensors that lie in
  // different pieces, has the attribute int "whole" = 1, or is `unshard`.
  bool gathers(const Op& op) const { return gathers_[static_cast<size_t>(&op - p_.ops().data())]; }

 private:
  void find_states(const std::vector<Unit>& units);
  void find_sources(const std::string& axis);
  bool follow(const Op& op);

  const Program& p_;
  std::vector<Chain> chains_;
  std::vector<int> chain_of_;  // by value
  std::vector<char> gathers_;  // by op
};

}  // namespace orrery
