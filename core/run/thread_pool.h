// SPDX-License-Identifier: Apache-2.0
//
// The process's only pool of compute threads. Workers are pinned. Between jobs they spin for a
// bounded time and then sleep on a futex: waking from it costs 30-70 us, but endless spinning would
// take CPUs from other processes.
#pragma once

#include <cstdint>
#include <vector>

namespace orrery {

class ThreadPool {
 public:
  // `configure` sets the number of threads and the CPUs to pin them to (empty: all that the process
  // may use). REQUIRES: the pool has not been used yet, or is idle. [main thread]
  static ThreadPool& get();
  void configure(int threads, std::vector<int> cpus = {});

  int threads() const;
  // Lets the calling thread use all CPUs of the pool. The first thread that calls `run` is pinned
  // like a worker, and threads that it creates inherit the pinning: they call this first.
  // [any thread]
  void unpin() const;
  // See orr_host.parallel_for.
  void run(int64_t n, void (*fn)(void*, int64_t), void* arg);
};

}  // namespace orrery
