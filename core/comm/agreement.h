// SPDX-License-Identifier: Apache-2.0
//
// What the ranks of a group tell each other before a collective moves a byte: which collective it
// is, and whether a rank has joined, that is, has run out of data and only stands in for the
// others' sums.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/world_comm.h"

namespace orrery {

// Travels between ranks.
struct Signature {
  uint64_t what = 0;      // hash of the collectives' text, in which all ranks must agree
  int64_t joined = 0;     // 0, or how many signatures this one is since the rank has joined
  int64_t stands_in = 0;  // whether ranks that have joined can take part with zeros
  int64_t counts[ORR_BOOL + 1] = {};  // elements to be summed, by dtype
};

// One rank's collective, as messages call it.
struct Description {
  std::string text;  // "allreduce 'loss' of f32[1], op sum"
  std::string line;  // Lua file:line
};

// Every rank's signature, by rank; collective over the group. Throws Error naming two ranks, what
// they said and their lines if they do not mean the same. [communication thread]
std::vector<Signature> agree(const WorldComm::Post& post, int size, Signature mine,
                             const Description& description);

// "train.lua:12, allreduce 'loss' of f32[1], op sum": `where` of the operations that a collective
// is made of.
std::string where_of(const Description& description);

}  // namespace orrery
