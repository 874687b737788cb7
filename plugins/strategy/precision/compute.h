// SPDX-License-Identifier: Apache-2.0
//
// Modules that compute in 16 bits.
#pragma once

#include <string>
#include <vector>

#include <orrery/sdk/program.hpp>

namespace precision {

// Makes the ops of all modules but those that `keep` names compute in `dtype`, before
// differentiation: what they read is cast, parameters once for each op that reads them, so that
// gradients stay apart by use; all else reads what it was traced with. Throws orr::Error for a
// pattern that names no module, and if nothing computes in f32.
void compute_in(const orr::Program& program, int32_t dtype, const std::vector<std::string>& keep);

}  // namespace precision
