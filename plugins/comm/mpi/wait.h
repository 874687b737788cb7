// SPDX-License-Identifier: Apache-2.0
//
// The one wait loop. MPI moves bytes only while it is called, so it is called again and again; a rank
// that shares its CPU gives it away in between, and one that waits for long sleeps.
#pragma once

#include <sched.h>
#include <time.h>

#include "comm.h"

namespace mpi {

template <class F>
void Comm::await(int64_t bytes, F&& done) {
  constexpr int64_t ms = 1000000;
  const auto test = [&] {
    std::lock_guard lock(family_->inside());
    return done();
  };
  for (int i = family_->has_own_cpu() ? 1000 : 10; i > 0; --i)
    if (test()) return;
  const int64_t deadline = current_ && current_->deadline_ns > 0 ? current_->deadline_ns
                                                                  : family_->boot().deadline_ns;
  // Bytes may take their time: 100 MB/s is slow for any network, and no reason to blame or to sleep.
  int64_t last = shared::now_ns(), waited = -10 * bytes, asked_at = -1, looked = waited;
  while (!test()) {
    const int64_t now = shared::now_ns();
    waited += std::min(now - last, 50 * ms);  // a pause of this very process is no sign against peers
    last = now;
    if (waited - looked > ms) {
      looked = waited;
      look_around(waited, deadline, asked_at);
    }
    if (waited < 50 * ms) {
      sched_yield();
    } else {
      const timespec nap{0, ms / 5};
      nanosleep(&nap, nullptr);
    }
  }
}

}  // namespace mpi
