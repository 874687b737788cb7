// SPDX-License-Identifier: Apache-2.0
//
// How the operands of a reduction become one: left to right in rank order, or along the binary tree
// over the leaves (design section 8). The order is a property of the operation, never of the way the
// bytes take: every backend that folds by this gives the same bits.
#pragma once

#include <orrery/comm.h>

#include <cstdint>
#include <vector>

#include "arithmetic.h"

namespace shared {

// The operands of all ranks stand in rank order; rank r's are [first(r), first(r + 1)).
class Folding {
 public:
  // REQUIRES: `c` adds and is well-formed (operation.h).
  Folding(const orr_coll& c, int ranks);

  int operands() const { return first_.back(); }
  int first(int rank) const { return first_[rank]; }
  int owned(int rank) const { return first_[rank + 1] - first_[rank]; }
  int most_owned() const;
  // Folds n elements at each address of `in` into all of `out`, block by block. out[0] may be any of
  // the operands' places. REQUIRES: in has operands() addresses.
  void run(const std::vector<const char*>& in, const std::vector<char*>& out, int64_t n);

 private:
  // A sum of two operands of a tree; the number of its result follows those of the inputs.
  struct Sum {
    int a, b;
  };
  int plan_node(int64_t lo, int64_t width, int64_t total, const std::vector<int64_t>& first,
                const std::vector<int64_t>& last);
  void plan_tree(const orr_coll& c, int ranks);
  void run_tree(const std::vector<const char*>& in, char* out, int64_t at, int64_t n);

  int64_t unit_;
  Fold fold_;
  bool tree_;
  std::vector<int> first_;
  std::vector<Sum> sums_;
  std::vector<char> scratch_;
  std::vector<const void*> block_in_;
};

}  // namespace shared
