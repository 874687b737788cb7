// SPDX-License-Identifier: Apache-2.0
//
// Ranks that train alone and meet now and then (Stich, "Local SGD", ICLR 2019).
#pragma once

#include "lower/mesh.h"
#include "program/program.h"

namespace orrery {

// Makes the update use sums over the rank's own leaves; what the forward pass reports stays a mean
// over all. Marks the ops that add so with int "alone" = 1 (lower/localize.h).
void train_alone(Program& p);

// The program that makes the parameters, or all states, what a rank has of them, their means over
// the ranks. `trained` is the rank's own program.
Program averaging_program(const Program& trained, const Spread& spread);
// The spread that it runs under.
Spread averaging_spread(Spread spread);

}  // namespace orrery
