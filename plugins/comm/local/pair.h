// SPDX-License-Identifier: Apache-2.0
//
// Messages between two ranks: the two ends' state.
#pragma once

#include <orrery/comm.h>

#include <list>
#include <vector>

#include "segment.h"

namespace local {

// One end of a message in the present group.
struct Transfer {
  const orr_coll* coll;
  bool sends;
  bool begun = false, done = false;
  bool in_place = false;  // of a send that has begun
  uint64_t moved = 0;
  uint64_t number = 0;  // of the last part that has left
};

// A message that came before its receive was posted.
struct Stray {
  MessageHeader message;
  shared::Label label;
  std::vector<char> bytes;
  bool complete = false;
};

// What a sender knows of its ring: parts it has sent, and has last seen to be received.
struct Outbound {
  uint64_t sent = 0, taken = 0;
};

// The message that is coming in from one peer, and the strays before it.
struct Inbound {
  uint64_t taken = 0;  // parts
  bool open = false;
  uint64_t bytes = 0, got = 0;
  char* to = nullptr;
  Transfer* transfer = nullptr;  // else the last stray
  std::list<Stray> strays;
};

}  // namespace local
