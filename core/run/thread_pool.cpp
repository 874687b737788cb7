// SPDX-License-Identifier: Apache-2.0
//
// The pool. A generation counter starts a job, a counter of unfinished workers ends it. Both are
// futex words, so that either side may spin or sleep on them.
#include "run/thread_pool.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <climits>
#include <thread>

#include "base/machine.h"

namespace orrery {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto long_spin = std::chrono::microseconds(300);

void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

// A futex word with the number of its sleepers: no thread is woken if none sleeps.
class Futex {
 public:
  std::atomic<uint32_t> value{0};

  // Returns when value != old.
  void wait_while(uint32_t old, std::chrono::nanoseconds spin) {
    const Clock::time_point end = Clock::now() + spin;
    do {
      for (int i = 0; i < 64; ++i) {
        if (value.load(std::memory_order_acquire) != old) return;
        pause_cpu();
      }
    } while (Clock::now() < end);
    sleepers_.fetch_add(1);
    while (value.load() == old)
      syscall(SYS_futex, &value, FUTEX_WAIT_PRIVATE, old, nullptr, nullptr, 0);
    sleepers_.fetch_sub(1);
  }

  void wake() {
    if (sleepers_.load())
      syscall(SYS_futex, &value, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
  }

 private:
  std::atomic<uint32_t> sleepers_{0};
};

struct Job {
  int64_t n = 0;
  void (*fn)(void*, int64_t) = nullptr;
  void* arg = nullptr;
};

class Team {
 public:
  Team() { configure(0, {}); }

  void configure(int threads, std::vector<int> cpus) {
    stop();
    cpus_ = cpus.empty() ? allowed_cpus() : std::move(cpus);
    threads_ = threads > 0 ? threads : int(cpus_.size());
    // With more threads than CPUs, a thread that spins keeps another from working.
    spin_ = threads_ <= int(cpus_.size()) ? long_spin : std::chrono::microseconds(0);
  }

  int threads() const { return threads_; }

  void unpin() const { run_on(cpus_); }

  void run(const Job& job) {
    if (job.n <= 1 || threads_ == 1 || busy_.exchange(true)) {
      for (int64_t i = 0; i < job.n; ++i) job.fn(job.arg, i);
      return;
    }
    start();
    job_ = job;
    unfinished_.value.store(uint32_t(threads_ - 1), std::memory_order_relaxed);
    generation_.value.fetch_add(1);
    generation_.wake();
    share(job_, 0);
    for (uint32_t left; (left = unfinished_.value.load(std::memory_order_acquire)) != 0;)
      unfinished_.wait_while(left, spin_);
    busy_.store(false);
  }

 private:
  void share(const Job& job, int thread) const {
    const int64_t end = job.n * (thread + 1) / threads_;
    for (int64_t i = job.n * thread / threads_; i < end; ++i) job.fn(job.arg, i);
  }

  // Workers start with the first job, so that the process may still fork before. The caller is
  // pinned as well: on a worker's CPU its spinning would delay the worker that it waits for.
  void start() {
    if (!workers_.empty()) return;
    pin(0);
    const uint32_t now = generation_.value.load();
    for (int t = 1; t < threads_; ++t) workers_.emplace_back([this, t, now] { work(t, now); });
  }

  void pin(int thread) const { run_on({cpus_[size_t(thread) % cpus_.size()]}); }

  void stop() {
    if (workers_.empty()) return;
    unpin();
    stopping_.store(true);
    generation_.value.fetch_add(1);
    generation_.wake();
    for (std::thread& worker : workers_) worker.join();
    workers_.clear();
    stopping_.store(false);
  }

  void work(int thread, uint32_t seen) {
    pin(thread);
    for (;; ++seen) {
      generation_.wait_while(seen, spin_);
      if (stopping_.load()) return;
      share(job_, thread);
      if (unfinished_.value.fetch_sub(1) == 1) unfinished_.wake();
    }
  }

  int threads_ = 1;
  std::vector<int> cpus_;
  std::chrono::microseconds spin_{0};
  std::vector<std::thread> workers_;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> busy_{false};  // a nested or concurrent call runs inline
  Job job_;
  alignas(64) Futex generation_;
  alignas(64) Futex unfinished_;
};

// Lives until the process ends: workers may still sleep in it during exit.
Team& team() {
  static Team* const team = new Team;
  return *team;
}

}  // namespace

ThreadPool& ThreadPool::get() {
  static ThreadPool pool;
  return pool;
}

void ThreadPool::configure(int threads, std::vector<int> cpus) {
  team().configure(threads, std::move(cpus));
}

void ThreadPool::unpin() const { team().unpin(); }

int ThreadPool::threads() const { return team().threads(); }

void ThreadPool::run(int64_t n, void (*fn)(void*, int64_t), void* arg) { team().run({n, fn, arg}); }

}  // namespace orrery
