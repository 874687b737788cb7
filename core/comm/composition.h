// SPDX-License-Identifier: Apache-2.0
//
// A sum over ranks as a list of messages and folds (additions of operands), for memory that the
// host cannot access: a backend enqueues the messages on a stream, and kernels on the same stream
// compute the folds. The order of the sums is that of every backend (sdk/fold.hpp).
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

// The buffer of `bytes` bytes at a spot. REQUIRES: spot.in is not `nowhere`.
orr_buffer buffer_at(const Spot& spot, int64_t bytes, const orr_coll& c, const orr_buffer& scratch);

struct SpotFold {
  std::vector<Spot> in;  // all operands
  Spot out;              // may be one of them
  int64_t elements;
};

struct Composition {
  // The messages of a round start together, and are done before its fold.
  struct Round {
    std::vector<orr::exchange::MessageAt<Spot>> sends, recvs;
    std::optional<SpotFold> fold;
  };
  orr::FoldOrder order;
  std::vector<Round> rounds;
  int64_t scratch = 0;  // bytes
};

// What `rank` has to do for `c`; each rank has a composition of its own. REQUIRES: `c` adds and is
// well-formed.
Composition compose(const orr_coll& c, int rank, int ranks);

}  // namespace orrery
