// SPDX-License-Identifier: Apache-2.0
//
// Compute copies (the half-precision parameters beside f32 masters of Micikevicius et al., ICLR
// 2018, as Rajbhandari et al., SC'20, count them). Where forward and backward read a parameter that
// is sharded through casts to one narrower dtype alone, the program keeps its value in that dtype
// as a state, and reads that. The parameter itself is then read by the update alone: it lies in
// pieces like an optimizer state, and what is whole on every rank, or gathered, is the copy.
#pragma once

#include "lower/mesh.h"
#include "program/program.h"

namespace orrery {

// Has a step, or an evaluation, read copies in place of its sharded parameters. Throws Error if it
// reads one otherwise of which earlier programs have kept a copy. For the logical program, once its
// update is written.
void read_copies(Program& p, const Mesh& mesh);

// Has a program that has copies among its states make those of the parameters that it updates.
void update_copies(Program& p);

}  // namespace orrery
