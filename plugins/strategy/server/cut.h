// SPDX-License-Identifier: Apache-2.0
//
// Cuts a training step in two for servers that take gradients as they come (Dean et al., "Large
// Scale Distributed Deep Networks", NIPS 2012): what a worker computes from its leaves
// (microbatches), and what a server does with the values that workers push. Without a bound workers
// push gradients. With a bound the server adds the gradients of one step in the canonical tree
// (ops.h, LEAVES), so workers push sums over the batch.
#pragma once

#include <string>
#include <vector>

#include <orrery/sdk/program.hpp>

#include "pace.h"

namespace server {

// One server's part. The lists hold names of states.
struct Share {
  std::string program;              // the server runs it to apply what has arrived
  std::vector<std::string> pushed;  // states in which workers put the values for this server
  std::vector<std::vector<std::string>> arrived;  // by range of leaves: the server's states for
                                                  // them, in the order of `pushed`
  std::vector<std::string> params;                // parameters as workers have them
  std::vector<std::string> masters;               // the server's copies, in the same order
};

// Edits the step into a worker's: it updates no parameter, but puts the values for the servers into
// states, or adds to these if several steps are pushed together. Writes the servers' programs
// beside the step, and returns the servers' parts.
std::vector<Share> cut(const orr::Program& step, const Pace& pace,
                       const std::vector<int64_t>& leaf_first);

}  // namespace server
