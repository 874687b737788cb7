// SPDX-License-Identifier: Apache-2.0
//
// A sum over ranks as messages and folds, for memory that the host does not reach: what is sent
// comes from a stream-ordered backend, what is folded from a kernel on the same stream. The order
// of the sums is that of every backend (sdk/fold.hpp).
#pragma once

#include <orrery/comm.h>

#include <cstdint>
#include <optional>
#include <orrery/sdk/exchange.hpp>
#include <vector>

namespace orrery {

// A place in one of the buffers of an operation.
struct Spot {
  enum Buffer { nowhere, send, recv, scratch } in = nowhere;
  int64_t offset = 0;
  friend Spot operator+(Spot s, int64_t bytes) { return {s.in, s.offset + bytes}; }
};

// The bytes there. REQUIRES: it is somewhere.
orr_buffer buffer_at(const Spot& spot, int64_t bytes, const orr_coll& c, const orr_buffer& scratch);

struct SpotFold {
  std::vector<Spot> in;  // all operands
  Spot out;              // one of them, or elsewhere
  int64_t elements;
};

struct Composition {
  // Messages start together, and are done before the fold.
  struct Round {
    std::vector<orr::exchange::MessageAt<Spot>> sends, recvs;
    std::optional<SpotFold> fold;
  };
  orr::FoldOrder order;
  std::vector<Round> rounds;
  int64_t scratch = 0;  // bytes
};

// The share of `rank` in the work; the others have theirs. REQUIRES: `c` adds and is well-formed.
Composition compose(const orr_coll& c, int rank, int ranks);

}  // namespace orrery
