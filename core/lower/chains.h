// SPDX-License-Identifier: Apache-2.0
//
// The update of each parameter as a chain: its summed gradient, its optimizer states, and every
// tensor computed from them, which lie in pieces as the parameter does. Chains meet in scalars,
// which all ranks have, and in ops that read what they need gathered.
#pragma once

#include <vector>

#include "lower/units.h"
#include "program/program.h"

namespace orrery {

struct Chain {
  size_t unit = 0, member = 0;  // which parameter: units[unit].params[member]
  const Dims* cuts = nullptr;   // its shards
};

class Chains {
 public:
  // REQUIRES: both outlive this.
  Chains(const Program& p, const std::vector<Unit>& units);

  // The chain that a tensor belongs to; null for scalars and everything else.
  const Chain* of(ValueId v) const;
  // The chain whose ranks compute this op; null if all do.
  const Chain* of(const Op& op) const;
  // Whether this op of the program's update needs all elements of its tensors on every rank that
  // computes it, which are all: it makes a scalar of a tensor, cannot work on pieces, reads tensors
  // that different ranks have, or says so by int "whole" = 1.
  bool reads_whole(const Op& op) const {
    return whole_[static_cast<size_t>(&op - p_.ops().data())];
  }

 private:
  class Joiner;
  ValueId param(const Chain& c) const;

  const Program& p_;
  const std::vector<Unit>& units_;
  std::vector<Chain> chains_;
  std::vector<int> chain_of_;  // by value
  std::vector<char> whole_;    // by op
};

// Whether this op of the update turns a whole tensor into a scalar.
bool is_whole_reduce(const Program& p, const Op& op);
// Has sums that a hook exchanges over some of the axes stay whole on the others.
void keep_exchanged_whole(Program& p, const Spread& spread);
// Whether this op is a sum over the batch that ranks must add up.
bool is_exchanged_total(const Program& p, const Op& op);

}  // namespace orrery
