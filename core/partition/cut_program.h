// SPDX-License-Identifier: Apache-2.0
//
// One rank's share of a program in which some values are cut over mesh axes (Mesh::placed). The
// layouts that strategies ask for are propagated through forward, backward and update by the ops'
// factor maps. Where an op reads a value in another layout than the value has, an exchange moves
// it. Axes are handled one after the other, each on the program that the ones before have made.
#pragma once

#include <string>
#include <vector>

#include "partition/mesh.h"

namespace orrery {

struct CutProgram {
  Program program;                   // states have their parts (Value::part)
  std::vector<std::string> remarks;  // ops that cannot work on parts, so that inputs are gathered
  std::map<std::string, std::map<std::string, Dims>> segments;  // by axis: Placing::segments
  // By ValueId of the logical program: the value in `program` that stands for it. kNone where there
  // is none, or where several values sum up to it.
  std::vector<ValueId> here;
};

// Throws Error with the Lua line of the op, or of the strategy, where what is cut does not divide.
CutProgram cut_program(const Program& logical, const Mesh& mesh, int rank);

// Throws Error if ranks would post exchanges that differ in kind or order. This has to be checked:
// each rank chooses the cheapest way of each op for itself, and its own share decides which is the
// cheapest.
void check_exchanges(const Program& logical, const Mesh& mesh);

}  // namespace orrery
