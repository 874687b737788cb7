// SPDX-License-Identifier: Apache-2.0
//
// Cuts the tree of a sum over ranks into parts, each of which one launch can add.
#pragma once

#include <orrery/sdk/fold.hpp>
#include <vector>

#include "program/types.h"

namespace orrery {

struct SumPart {
  struct Sum {
    int a, b, result;
  };
  // Operands of the whole sum, by number. One that an earlier part has overwritten is its result.
  std::vector<int> in;
  std::vector<Sum> sums;  // of operands, or of results of sums before; the last one is the part's
  int onto = kNone;       // the operand that the result overwrites; kNone: it is the whole sum
};

// The parts of at most `most` operands, in an order in which they can run; the last one is the
// whole sum. Earlier ones overwrite operands of other ranks than `rank`. REQUIRES: a tree, and most
// > 1.
std::vector<SumPart> parts_of(const orr::FoldOrder& order, int rank, int most);

}  // namespace orrery
