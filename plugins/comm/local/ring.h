// SPDX-License-Identifier: Apache-2.0
//
// Bytes in and out of a ring, at positions that only ever grow.
#pragma once

#include <algorithm>
#include <cstring>

#include "segment.h"
#include "slots.h"

namespace local {

inline void ring_write(Ring& ring, uint64_t at, const void* from, uint64_t n) {
  const uint64_t where = at % ring_bytes, first = std::min(n, ring_bytes - where);
  put(ring.data + where, from, first);
  put(ring.data, static_cast<const char*>(from) + first, n - first);
}

// Of a message of `all` bytes.
inline void ring_read(const Ring& ring, uint64_t at, void* to, uint64_t n, uint64_t all = 0) {
  const uint64_t where = at % ring_bytes, first = std::min(n, ring_bytes - where);
  take(to, ring.data + where, first, all);
  take(static_cast<char*>(to) + first, ring.data, n - first, all);
}

}  // namespace local
