// SPDX-License-Identifier: Apache-2.0
//
// The update of each parameter as a chain: its summed gradient, its optimizer states, and every
// tensor computed from them, which lie in pieces as the parameter does. Chains meet in scalars,
// which all ranks have, and in ops that read what they need gathered.
#pragma once

#include <string>
#include <vector>

#include "partition/shard/units.h"
#include "program/program.h"

namespace orrery {

struct Chain {
  size_t unit = 0, member = 0;  // which parameter: units[unit].params[member]
  const Dims* cuts = nullptr;   // its shards
};

class Chains {
 public:
  // `axis`: whose ranks gradients are summed over. REQUIRES: program and units outlive this.
  Chains(const Program& p, const std::vector<Unit>& units, const std::string& axis);

  // The chain that a tensor belongs to; null for scalars and everything else.
  const Chain* of(ValueId v) const;
  // The chain whose ranks compute this op; null if all do.
  const Chain* of(const Op& op) const { return op.out.empty() ? nullptr : of(op.out[0]); }
  // Whether all ranks compute this op of the update, from tensors of chains that every one of them
  // needs all of: it makes a scalar of a tensor, cannot work on pieces, reads tensors that
  // different ranks have, or says so by int "whole" = 1.
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
