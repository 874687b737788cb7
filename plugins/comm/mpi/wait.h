// SPDX-License-Identifier: Apache-2.0
//
// The one wait loop: MPI moves bytes only while it is called.
#pragma once

#include "../shared/waiting.h"
#include "comm.h"

namespace mpi {

template <class F>
void Comm::await(int64_t bytes, F&& done) {
  int64_t asked_at = -1;
  shared::wait_until(family_->has_own_cpu(), bytes, done,
                     [&](int64_t waited) {  // done() may have changed what is waited for
                       const int64_t own = current_ ? current_->deadline_ns : 0;
                       look_around(waited, own > 0 ? own : family_->boot().deadline_ns, asked_at);
                     });
}

template <class F>
void Comm::by_library(int64_t bytes, F&& start) {
  std::vector<MPI_Request> requests;
  {
    std::lock_guard lock(family_->inside());
    start(requests);
  }
  end_agreement(requests);
  finish(requests, bytes);
}

}  // namespace mpi
