// SPDX-License-Identifier: Apache-2.0
//
// The options of modes in which ranks share no common step: how often workers push and pull, how
// far they may run ahead, and which server owns which parameter.
#pragma once

#include <orrery/ops.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace server {

constexpr const char* kRemedy = "give mode = \"sync\"";

struct Pace {
  int32_t servers = 1;         // how many; servers are the first ranks
  int32_t push = 1, pull = 1;  // steps between two pushes of gradients, two pulls of weights
  int32_t bound = -1;  // -1: gradients are applied as they come. Else those of one step are applied
                       // together, and a worker is at most this many steps ahead of the weights
                       // that it reads
  std::string log, replay;               // files of arrivals, "" none
  std::map<std::string, int32_t> owner;  // parameter -> server
  bool bounded() const { return bound >= 0; }
};

using LeafRange = std::pair<int64_t, int64_t>;  // [first, last)

// Returns the ranges of microbatches (leaves of the tree of sums, orrery/ops.h) that a rank pushes
// separately, in their order. If servers add in the tree, each range is a node of the tree; else
// there is one range, all microbatches of the rank. `leaf_first` as in orr_driver_host.
inline std::vector<LeafRange> pushed_leaves(const Pace& pace,
                                            const std::vector<int64_t>& leaf_first, int rank) {
  int64_t at = leaf_first[static_cast<size_t>(rank)];
  const int64_t last = leaf_first[static_cast<size_t>(rank) + 1];
  std::vector<LeafRange> ranges;
  if (!pace.bounded() && at < last) return {{at, last}};
  for (int64_t begin = at; orr_tree_node(&at, last, leaf_first.back()) > 0; begin = at)
    ranges.push_back({begin, at});
  return ranges;
}

}  // namespace server
