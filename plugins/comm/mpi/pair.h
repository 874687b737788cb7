// SPDX-License-Identifier: Apache-2.0
//
// Messages between two ranks: the two ends' state.
#pragma once

#include <memory>

#include <orrery/comm.h>
#include <orrery/sdk/exchange.hpp>

#include "heads.h"
#include "mpi_header.h"

namespace mpi {

// One end of a message under way.
struct Transfer {
  const orr_coll* coll;  // that it is, or is part of
  bool sends;
  bool lends;  // writes the head: the sender, or the receiver of what its sender delivers
  int32_t tag;
  orr::exchange::Message message;  // from peer -1: from whoever sends one
  int first, pieces;               // of the requests: the body's; none if it goes with its head
  bool begun = false, head_done = false, done = false;
  uint64_t number = 0, lent = 0;    // as its head says
  int64_t copied = 0;               // bytes to or from what is lent
  std::unique_ptr<Head> head = {};  // that the library carries
  MPI_Request head_request = MPI_REQUEST_NULL;

  int peer() const { return message.peer; }
  int64_t count() const { return message.bytes / orr_dtype_bytes(coll->dtype); }
  bool wants(int source, const Head& h) const {
    return !lends && !head_done && (peer() < 0 || peer() == source) && tag == h.tag;
  }
  bool by_library() const { return pieces > 0 && lent == 0; }
};

// A head that came before its receive was posted.
struct Early {
  int source;
  Head head;
};

}  // namespace mpi
