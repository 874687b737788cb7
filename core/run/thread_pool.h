// SPDX-License-Identifier: Apache-2.0
//
// The process's one pool of compute threads. Workers are pinned, spin for a bounded time and then
// sleep on a futex (a futex wake costs 30-70 us, endless spinning ruins shared machines).
#pragma once

#include <cstdint>
#include <vector>

namespace orrery {

class ThreadPool {
 public:
  // The pool that host/1 lends. `configure` sets its size and the CPUs to pin to (empty: those the
  // process may use); REQUIRES: before first use or while idle. [main thread]
  static ThreadPool& get();
  void configure(int threads, std::vector<int> cpus = {});

  int threads() const;
  // Lets the calling thread use all CPUs of the pool. The thread that calls `run` first is pinned
  // like a worker, and threads that it creates inherit that: they call this first. [any thread]
  void unpin() const;
  // See orr_host.parallel_for.
  void run(int64_t n, void (*fn)(void*, int64_t), void* arg);
};

}  // namespace orrery
