// SPDX-License-Identifier: Apache-2.0
//
// Messages between two ranks: what travels in a ring, and the two ends' state.
#pragma once

#include <orrery/comm.h>

#include <list>
#include <vector>

#include "segment.h"

namespace local {

// Precedes the bytes of every message; the words of its label follow it. With a place, the bytes
// stay where they are and the receiver fetches them; the message leaves the ring when they have
// been fetched.
struct Envelope {
  uint64_t bytes;
  int32_t tag, dtype;
  int64_t count;
  Place place;
  uint32_t name, where;  // how many characters

  uint64_t size() const { return sizeof *this + name + where; }  // in the ring
};

// One end of a message in the present group.
struct Transfer {
  const orr_coll* coll;
  bool sends;
  bool begun = false, done = false;
  bool direct = false;
  uint64_t moved = 0;
  uint64_t end = 0;  // ring position after it, for a direct send
};

// A message that came before its receive was posted.
struct Stray {
  Envelope envelope;
  shared::Label label;
  std::vector<char> bytes;
  bool complete = false;
};

// The message that is coming in from one peer, and the strays before it.
struct Inbound {
  bool open = false;
  Envelope envelope{};
  uint64_t got = 0;
  char* to = nullptr;
  Transfer* transfer = nullptr;  // else the last stray
  std::list<Stray> strays;
};

}  // namespace local
