// SPDX-License-Identifier: Apache-2.0
//
// Sharded training state (Rajbhandari et al., "ZeRO", SC'20) as a rewrite of one rank's program:
// sums of gradients end as pieces at their owners, updates run on pieces, new parameters are
// gathered; or parameters stay in pieces and are gathered before the layers that use them (Zhao et
// al., "PyTorch FSDP", VLDB 2023).
#pragma once

#include "lower/mesh.h"
#include "program/program.h"

namespace orrery {

// The program of `rank`. `p` may be a stage of the whole; parts of its states are cut further.
Program shard(const Program& p, const Mesh& mesh, int rank);

}  // namespace orrery
