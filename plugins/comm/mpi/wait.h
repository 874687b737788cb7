// SPDX-License-Identifier: Apache-2.0
//
// The one wait loop: MPI moves bytes only while it is called.
#pragma once

#include "../shared/waiting.h"
#include "comm.h"

namespace mpi {

template <class F>
void Comm::await(int64_t bytes, F&& done) {
  const int64_t deadline = current_ && current_->deadline_ns > 0 ? current_->deadline_ns
                                                                  : family_->boot().deadline_ns;
  int64_t asked_at = -1;
  shared::wait_until(
      family_->has_own_cpu(), bytes,
      [&] {
        std::lock_guard lock(family_->inside());
        return done();
      },
      [&](int64_t waited) { look_around(waited, deadline, asked_at); });
}

}  // namespace mpi
