// SPDX-License-Identifier: Apache-2.0
//
// Pointwise ops as such of other dims: in which each of theirs may be several neighbours, and dims
// of one index may stand anywhere. What they read and make is then seen through reshapes, which
// split dims but join none, and so need no copy however a value lies.
#pragma once

#include <optional>
#include <vector>

#include "partition/localize.h"

namespace orrery {

// What an operand x of a pointwise op of the dims `from` is for the same op of the dims `to`; none
// if the op has no such form.
std::optional<Dims> seen_in(const Dims& x, const Dims& from, const Dims& to);

class OtherDims {
 public:
  // Borrows the program. `pinned` is by value (read_from_outside).
  OtherDims(const LocalProgram& local, const std::vector<char>& pinned);

  // What v is a reshape of; kNone if it is none.
  ValueId under(ValueId v) const;
  // v, or what is under it and no reshape.
  ValueId root(ValueId v) const;
  // v, or what is under it, if that has these dims; else kNone.
  ValueId known(ValueId v, const Dims& dims) const;
  // Whether the pointwise op may be one of these dims: its results may be reshapes of others.
  bool may_have(const Op& op, const Dims& dims) const;

 private:
  const Program& p_;
  std::vector<char> fixed_;  // by value: read by others than pointwise ops and reshapes
};

}  // namespace orrery
