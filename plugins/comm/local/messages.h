// SPDX-License-Identifier: Apache-2.0
//
// Messages between two ranks of a communicator, in a stream for each ordered pair of ranks (a ring
// in shared memory, or a socket): a head, the bytes, and what send and recv call it, for errors.
// Messages of one kind and tag between two ranks keep their order; one that comes before it is
// wanted is set aside, so that it blocks no other.
#pragma once

#include <orrery/comm.h>

#include <list>
#include <vector>

#include "../shared/operation.h"
#include "segment.h"

namespace local {

inline char* address_of(const orr_buffer& b) {
  return b.memory ? static_cast<char*>(orr_buffer_host(&b)) : nullptr;
}

enum Kind : int32_t { card = 1, piece = 2, whole = 3 };  // of a collective; of send and recv

// Precedes the bytes of every message.
struct Head {
  int64_t count;
  int32_t kind, tag, dtype;
  Place place;  // the bytes stay here until the receiver has fetched them; none: they follow

  uint64_t bytes() const { return static_cast<uint64_t>(count * orr_dtype_bytes(dtype)); }
  uint64_t bytes_behind() const { return place.exists() ? 0 : bytes(); }
  uint64_t label_bytes() const { return kind == whole ? sizeof(shared::Label) : 0; }
  bool same(const Head& other) const { return kind == other.kind && tag == other.tag; }
  bool equal(const Head& other) const {
    return same(other) && count == other.count && dtype == other.dtype;
  }
};

// One end of a message under way.
struct Request {
  Request(const orr_coll& c, int to_or_from, bool sends, char* data)
      : coll(&c), peer(to_or_from), sends(sends), data(data) {}

  const orr_coll* coll;  // that it belongs to
  int peer;
  bool sends;
  char* data;
  Head head;            // as this end has it
  shared::Label label;  // of a send
  uint64_t number = 0;  // of a send in place, from 1
  bool begun = false, done = false;
  uint64_t moved = 0;  // bytes of the stream that have left

  uint64_t left() const { return sizeof(Head) + head.bytes_behind() + head.label_bytes() - moved; }
};

// A message that came before it was wanted.
struct Stray {
  Head head;
  shared::Label label;
  std::vector<char> bytes;
  bool complete = false;
};

// The message that is coming in from one peer, and the strays before it.
struct Inbound {
  bool open = false;  // its head is there
  Head head{};
  uint64_t got = 0;  // bytes, of the head or behind it
  char* to = nullptr;
  Request* request = nullptr;  // else the last stray
  std::list<Stray> strays;
};

}  // namespace local
