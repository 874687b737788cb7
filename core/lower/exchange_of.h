// SPDX-License-Identifier: Apache-2.0
//
// What an op of communication is for a backend. [no peer takes part]
#pragma once

#include "lower/rank_plan.h"

namespace orrery {

// The exchange that `op` of the local program p is on this rank; where its ends lie is not filled
// in.
Exchange exchange_of(const Program& p, const Op& op, const Mesh& mesh, int rank);

}  // namespace orrery
