// SPDX-License-Identifier: Apache-2.0
//
// Sums over the batch, as ops.h has them under LEAVES: whatever number of leaves a call is for, its
// nodes are those of the binary tree over the sums of single leaves.
#pragma once

#include "conformance/kernel/harness.h"

namespace kernel_suite {

// Each answers with what is wrong, "" if nothing is. `one` is the case of a single leaf; the plugin
// has that op. One call over `total` leaves against `total` calls over one, and against the oracle:
std::string leaves_of_one_call(const std::string& plugin, const Case& one, int64_t total,
                               uint32_t seed);
// The nodes that `ranks` ranks export, added, against those of one:
std::string leaves_of_ranks(const std::string& plugin, const Case& one, int64_t total,
                            int64_t ranks, uint32_t seed);

}  // namespace kernel_suite
