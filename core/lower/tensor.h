// SPDX-License-Identifier: Apache-2.0
//
// Tensor parallelism: one rank's share of a program whose parameters are cut over a mesh axis
// (Spread::tensor). Placements are propagated through forward, backward and update by the ops'
// factor maps; where they do not meet, the cheapest exchange is put in.
#pragma once

#include <string>
#include <vector>

#include "lower/cut.h"
#include "lower/mesh.h"

namespace orrery {

struct TensorProgram {
  Program program;                       // values keep their ids; states have their parts
  std::vector<std::string> remarks;      // exchanges that no split of a layer calls for
  std::map<std::string, Dims> segments;  // of cut parameters (TensorAsk)
};

// REQUIRES: spread.tensor.axis is an axis. Throws Error with the Lua line of the op where heads or
// a sequence do not divide.
TensorProgram cut_program(const Program& logical, const Spread& spread, int rank);

}  // namespace orrery
