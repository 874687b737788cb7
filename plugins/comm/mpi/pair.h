// SPDX-License-Identifier: Apache-2.0
//
// Messages between two ranks: the two ends' state.
#pragma once

#include <memory>

#include <orrery/comm.h>
#include <orrery/sdk/plugin.hpp>

#include "heads.h"
#include "mpi_header.h"

namespace mpi {

// One end of a message in the present group.
struct Transfer {
  const orr_coll* coll;
  int64_t bytes;
  int first, pieces;  // of the group's requests: the body's; none if it goes with its head
  bool begun = false, head_done = false, done = false;
  std::unique_ptr<Head> head = {};  // that the library carries
  MPI_Request head_request = MPI_REQUEST_NULL;

  bool sends() const { return coll->op == ORR_COLL_SEND; }
  int peer() const { return coll->root_or_peer; }
  bool wants(int source, const Head& h) const {
    return !sends() && !head_done && (peer() < 0 || peer() == source) && coll->tag == h.tag;
  }
  char* data() const {
    return bytes > 0 ? orr::data<char>(sends() ? coll->send : coll->recv) : nullptr;
  }
};

// A head that came before its receive was posted.
struct Early {
  int source;
  Head head;
};

}  // namespace mpi
