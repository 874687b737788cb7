// SPDX-License-Identifier: Apache-2.0
//
// Modules that compute in 16 bits.
#pragma once

#include <string>
#include <vector>

#include <orrery/sdk/program.hpp>

namespace precision {

// Makes the ops of all modules compute in `dtype`, except the modules that `keep` names. Must run
// before differentiation. What these ops read is cast; a parameter is cast once for each op that
// reads it, so that it has one gradient for each use. All other ops read the types that they were
// traced with. Throws orr::Error if a pattern names no module or if nothing computes in f32.
void compute_in(const orr::Program& program, int32_t dtype, const std::vector<std::string>& keep);

}  // namespace precision
