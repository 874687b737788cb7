// SPDX-License-Identifier: Apache-2.0
//
// A training step cut in two for servers that take gradients as they come (Dean et al., "Large
// Scale Distributed Deep Networks", NIPS 2012): what a worker does with its leaves, and what a
// server does with what it is pushed. The cut goes through the gradients, or, where the server adds
// those of one step in the canonical tree (ops.h, LEAVES), through the sums over the batch.
#pragma once

#include <string>
#include <vector>

#include <orrery/sdk/program.hpp>

#include "pace.h"

namespace server {

// One server's part. Names of states; parallel where several lists are.
struct Share {
  std::string program;                            // applies what has arrived
  std::vector<std::string> pushed;                // where workers leave what they push to it
  std::vector<std::vector<std::string>> arrived;  // by range of leaves: where it puts that
  std::vector<std::string> params, masters;       // the workers' parameters, and its own
};

// Edits the step into a worker's, which updates no parameter, but leaves what servers want, or, if
// several steps are pushed together, adds that to what it has left; and writes the servers'
// programs beside it. Returns the servers' parts.
std::vector<Share> cut(const orr::Program& step, const Pace& pace,
                       const std::vector<int64_t>& leaf_first);

}  // namespace server
