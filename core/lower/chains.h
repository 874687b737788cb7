// SPDX-License-Identifier: Apache-2.0
//
// The update of each parameter as a chain: its summed gradient, its optimizer states, and every
// tensor computed from them. Chains meet only in scalars, which all ranks have.
#pragma once

#include <vector>

#include "lower/units.h"
#include "program/program.h"

namespace orrery {

struct Chain {
  size_t unit = 0, member = 0;  // which parameter: units[unit].params[member]
  const Dims* cuts = nullptr;   // its shards
  OpId rigid = kNone;           // an op that cannot work on a piece of its tensors
};

class Chains {
 public:
  // Throws Error for a parameter that is cut although its update is not elementwise, and for
  // parameters with different owners whose updates use each other's tensors.
  Chains(const Program& p, const std::vector<Unit>& units);

  // The chain that a tensor belongs to; null for scalars and everything else.
  const Chain* of(ValueId v) const;
  // The chain whose ranks compute this op; null if all do.
  const Chain* of(const Op& op) const;
  const std::vector<Chain>& all() const { return chains_; }

 private:
  const Program& p_;
  std::vector<Chain> chains_;
  std::vector<int> chain_of_;  // by value
};

// Whether this op of the update turns a whole tensor into a scalar.
bool is_whole_reduce(const Program& p, const Op& op);
// Whether this op of the update needs all elements of a tensor at once: int "whole" = 1 says so,
// too.
bool reads_whole(const Program& p, const Op& op);
// Has sums that a hook exchanges over some of the axes stay whole on the others.
void keep_exchanged_whole(Program& p, const Spread& spread);
// Has ops of an update that cannot work on pieces read their tensors whole, on every rank that has
// a piece: it takes time and memory. For what strategies write, who know nothing of pieces.
void gather_for_rigid(Program& p, const Spread& spread);
// Whether this op is a sum over the batch that ranks must add up.
bool is_exchanged_total(const Program& p, const Op& op);

}  // namespace orrery
