// SPDX-License-Identifier: Apache-2.0
//
// One rank's share of a program some of whose values are cut over mesh axes (Mesh::placed). The
// layouts asked for are propagated through forward, backward and update by the ops' factor maps;
// where a value is read in another layout than it has, an exchange moves it. One axis after the
// other, each on what the ones before have made.
#pragma once

#include <string>
#include <vector>

#include "partition/mesh.h"

namespace orrery {

struct CutProgram {
  Program program;                   // values keep their ids; states have their parts
  std::vector<std::string> remarks;  // exchanges that no split of a layer calls for
  std::map<std::string, std::map<std::string, Dims>> segments;  // by axis: Placing::segments
  // By ValueId of the logical program: its value in this one; kNone where there are several, which
  // sum up to it, or none.
  std::vector<ValueId> here;
};

// Throws Error with the Lua line of the op, or of the strategy, where what is cut does not divide.
CutProgram cut_program(const Program& logical, const Mesh& mesh, int rank);

// Throws Error if ranks would post other exchanges than others, in kind or order. The axes are
// passed over one after the other, on each rank for itself, and what one rank's share looks like
// decides which way is the cheapest: so it is checked.
void check_exchanges(const Program& logical, const Mesh& mesh);

}  // namespace orrery
