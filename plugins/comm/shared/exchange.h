// SPDX-License-Identifier: Apache-2.0
//
// Collectives over messages between pairs of ranks, for backends that have nothing better. Whatever
// adds folds in the order of folding.h, so that the bits are those of every other backend.
#pragma once

#include <orrery/comm.h>

#include <cstdint>
#include <vector>

namespace shared {

// One end of a message; never to oneself, never empty.
struct Message {
  int peer;
  char* data;
  int64_t bytes;
};

class Messenger {
 public:
  virtual ~Messenger() = default;
  // Starts all of them together and returns when all are done. Messages between the same two ranks
  // match in the order of the lists. Throws when a peer is lost.
  virtual void exchange(const std::vector<Message>& sends, const std::vector<Message>& recvs) = 0;
};

// all_reduce, reduce, reduce_scatter and their trees: slices go to their owners, who fold them and
// deliver the result. REQUIRES: `c` is well-formed; the other ranks call this too.
void reduce(const orr_coll& c, int rank, int ranks, Messenger& messenger);

// broadcast, all_gather and all_to_all: every piece straight from who has it to who wants it.
void move(const orr_coll& c, int rank, int ranks, Messenger& messenger);

}  // namespace shared
