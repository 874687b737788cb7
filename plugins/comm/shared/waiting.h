// SPDX-License-Identifier: Apache-2.0
//
// The wait of a backend that has to ask its library again and again: often at first, then giving
// the CPU away in between, at last sleeping.
#pragma once

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <cstdint>

#include "operation.h"

namespace shared {

// Returns when done() says true. `bytes` is what has to move until then. look(waited) is called
// about once a millisecond with the nanoseconds waited so far, and may throw.
template <class Done, class Look>
void wait_until(bool own_cpu, int64_t bytes, Done&& done, Look&& look) {
  constexpr int64_t ms = 1000000;
  for (int i = own_cpu ? 1000 : 10; i > 0; --i)
    if (done()) return;
  // Bytes may take their time: 100 MB/s is slow for any network, and no reason to blame or to
  // sleep.
  int64_t last = now_ns(), waited = -10 * bytes, looked = waited;
  while (!done()) {
    const int64_t now = now_ns();
    waited +=
        std::min(now - last, 50 * ms);  // a pause of this very process is no sign against peers
    last = now;
    if (waited - looked > ms) {
      looked = waited;
      look(waited);
    }
    if (waited < 50 * ms) {
      sched_yield();
    } else {
      const timespec nap{0, ms / 5};
      nanosleep(&nap, nullptr);
    }
  }
}

}  // namespace shared
