// SPDX-License-Identifier: Apache-2.0
//
// Before a collective of a script moves data, the ranks of its group agree that all have called the
// same one. A rank may have joined: it has run out of data, and takes part in the other ranks' sums
// with zeros.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/world_comm.h"

namespace orrery {

// What ranks send each other about a collective.
struct Signature {
  uint64_t what = 0;      // hash of the collective's text, which must be equal on all ranks
  int64_t joined = 0;     // 0, or the number of signatures that the rank has sent since it joined
  int64_t stands_in = 0;  // 1 if ranks that have joined can take part with zeros
  int64_t counts[ORR_BOOL + 1] = {};  // elements to be summed, by dtype
};

// One rank's collective, as error messages describe it.
struct Description {
  std::string text;  // "allreduce 'loss' of f32[1], op sum"
  std::string line;  // Lua file:line
};

// Exchanges the signatures of all ranks and returns them, by rank; collective over the group. If
// the ranks have called different collectives, throws Error that names two ranks, their collectives
// and lines. [communication thread]
std::vector<Signature> agree(const WorldComm::Post& post, int size, Signature mine,
                             const Description& description);

// A text such as "train.lua:12, allreduce 'loss' of f32[1], op sum": the `where` of the operations
// that a collective is made of.
std::string where_of(const Description& description);

}  // namespace orrery
