// SPDX-License-Identifier: Apache-2.0
//
// What a rank has whole, for a while, of weights and gradients that lie in pieces: memory that is
// named in a plan.
#pragma once

#include <vector>

#include "program/program.h"

namespace orrery {

constexpr const char* kGatheredWeights = "gathered weights";
constexpr const char* kFullGradients = "full gradients";

// By value: kGatheredWeights for what is gathered of parameters or of copies of them before the
// update, kFullGradients for gradients of one microbatch that leave the rank as pieces, null for
// all others.
std::vector<const char*> names_of_wholes(const Program& p);

}  // namespace orrery
