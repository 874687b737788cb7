// SPDX-License-Identifier: Apache-2.0
//
// Waiting for peers that may be slow, frozen or dead. Yields first, then sleeps on a futex for
// short times, and asks the job's store in between who has ended and whom to blame.
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <orrery/sdk/plugin.hpp>

#include "../shared/blame.h"
#include "comm.h"

namespace local {
namespace {

using shared::now_ns;

constexpr int64_t ms = 1000000;

// How long a wait gives the CPU away and looks again before it sleeps, for who sleeps is late where
// ranks share CPUs. A time, not a count: who computes on this CPU keeps it for longer than this.
constexpr int64_t time_to_yield_ns = ms / 10;

void futex(std::atomic<uint32_t>& word, int op, uint32_t value, const timespec* timeout) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), op, value, timeout, nullptr, 0);
}

}  // namespace

// A store to our step, pulse or a ring must be visible before the sleepers are looked at; a sleeper
// looks at them again after it has said that it sleeps.
void Comm::ring_bells() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (segment_.header().sleepers.load(std::memory_order_relaxed) == 0) return;
  for (int r = 0; r < size_; ++r) {
    Member& m = segment_.member(r);
    if (r == rank_ || !m.asleep.load(std::memory_order_relaxed)) continue;
    m.bell.fetch_add(1, std::memory_order_release);
    futex(m.bell, FUTEX_WAKE, 1, nullptr);
  }
}

void Comm::show_pulse() {
  std::atomic<uint64_t>& pulse = segment_.member(rank_).pulse;
  pulse.store(pulse.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

void Comm::publish() {
  show_pulse();
  segment_.member(rank_).step.store(++step_, std::memory_order_release);
  ring_bells();
}

void Comm::await_step() {
  await([this](int from) {
    for (int r = from; r < size_; ++r)
      if (segment_.member(r).step.load(std::memory_order_acquire) < step_) return r;
    return -1;
  });
}

void Comm::sleep(const Missing& missing, int64_t ns) {
  Member& me = segment_.member(rank_);
  const uint32_t bell = me.bell.load(std::memory_order_acquire);
  me.asleep.store(1);
  segment_.header().sleepers.fetch_add(1);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const timespec timeout{0, ns};
  if (missing(0) >= 0) futex(me.bell, FUTEX_WAIT, bell, &timeout);
  segment_.header().sleepers.fetch_sub(1);
  me.asleep.store(0);
}

void Comm::blame_dead(const Missing& missing, int first) {
  std::vector<int> absent;
  for (int r = first; r >= 0; r = missing(r + 1)) absent.push_back(world_of_[r]);
  const int dead = shared::first_dead(family_->boot, absent);
  if (dead < 0) return;
  for (int r = missing(first); r >= 0; r = missing(r + 1))
    if (world_of_[r] == dead) family_->die_of(dead, current_);
  // Its last words have arrived.
}

void Comm::await_slowly(const Missing& missing) {
  for (const int64_t begin = now_ns(); now_ns() - begin < time_to_yield_ns;) {
    sched_yield();
    if (family_->spin ? missing(0) < 0 : spin(missing, true)) return;
  }
  int64_t nap = ms / 2;
  shared::Wait wait(family_->boot, current_);
  int who = -1;
  uint64_t pulse = 0;
  for (int next; (next = missing(0)) >= 0;) {
    const uint64_t beat = segment_.member(next).pulse.load(std::memory_order_relaxed);
    if (next != who || beat != pulse) wait.begin_anew();
    who = next;
    pulse = beat;
    family_->check_alive();
    blame_dead(missing, who);
    const std::string verdict = wait.look(world_of_[who]);
    if (!verdict.empty() && missing(0) == who) family_->die(ORR_DEADLINE, verdict);
    sleep(missing, nap);
    nap = std::min(nap * 2, 8 * ms);
  }
}

}  // namespace local
