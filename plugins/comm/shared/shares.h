// SPDX-License-Identifier: Apache-2.0
//
// Which elements of a reduction which rank folds.
#pragma once

#include <orrery/comm.h>

#include <cstdint>
#include <vector>

#include <orrery/sdk/traffic.hpp>

namespace shared {

// Rank r folds the elements [begin[r], begin[r] + length[r]) out of `total`, the elements of an operand.
struct Shares {
  int64_t total;
  bool scattered;  // each rank keeps its own share; else all shares make one result
  std::vector<int64_t> begin, length;
};

// REQUIRES: `c` adds and is well-formed (operation.h).
inline Shares shares_of(const orr_coll& c, int ranks) {
  const bool slices = c.op == ORR_COLL_TREE_REDUCE_SCATTER, pieces = c.op == ORR_COLL_REDUCE_SCATTER;
  Shares s{pieces ? orr::traffic::sum(c.counts, ranks) : c.count, slices || pieces, {}, {}};
  for (int r = 0; r < ranks; ++r) {
    const int64_t even = orr::traffic::share_begin(s.total, r, ranks);
    s.begin.push_back(slices ? c.recv_counts[r] : pieces ? orr::traffic::sum(c.counts, r) : even);
    s.length.push_back(s.scattered ? c.counts[r] : orr::traffic::share_begin(s.total, r + 1, ranks) - even);
  }
  return s;
}

}  // namespace shared
