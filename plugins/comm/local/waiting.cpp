// SPDX-License-Identifier: Apache-2.0
//
// Waiting for peers that may be slow, frozen or dead. Yields first, then sleeps on a futex for
// short times; looks at the poison, at the launcher's word on deaths and at the clock between.
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <orrery/sdk/plugin.hpp>
#include <utility>

#include "../shared/blame.h"
#include "comm.h"
#include "mesh.h"

namespace local {
namespace {

using shared::now_ns;
using shared::seconds;

constexpr int64_t ms = 1000000;

// How long a wait gives the CPU away and looks again before it sleeps, for who sleeps is late where
// ranks share CPUs. A time, not a count: who computes on this CPU keeps it for longer than this.
constexpr int64_t time_to_yield_ns = ms / 10;

void futex(std::atomic<uint32_t>& word, int op, uint32_t value, const timespec* timeout) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), op, value, timeout, nullptr, 0);
}

}  // namespace

void Comm::poison(int32_t code, const std::string& text) {
  if (family_->kill(code, text)) ring_bells();
}

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

// Follows who waits for whom to the rank that waits for nobody: that one is frozen or late. So is
// one that says it waits but has not looked for a while, unless its process answers. Returns if it
// is to be waited for.
void Comm::blame_silent(int first, int64_t deadline_ns, int64_t waited) {
  const int64_t fresh = std::min<int64_t>(deadline_ns / 2, 1000 * ms);
  const orr_comm_boot& boot = family_->boot;
  // Looks again when the question below has been answered.
  segment_.member(rank_).looked_ns.store(now_ns() + shared::time_to_answer_ns);
  int culprit = first;
  std::vector<bool> seen(size_, false);
  while (!seen[culprit]) {
    seen[culprit] = true;
    const Member& m = segment_.member(culprit);
    const int next = m.waits_for.load(), rank = world_of_[culprit];
    const bool waits = next >= 0 && next < size_;
    if (!waits || (now_ns() - m.looked_ns.load() > fresh && !shared::lives(boot, rank))) {
      const std::string verdict = shared::judge(boot, {rank}, waited, here());
      if (verdict.empty() || m.waits_for.load() != next) return;
      family_->die(ORR_DEADLINE, verdict);
    }
    culprit = next;
  }
  family_->die(ORR_DEADLINE, "ranks " + std::to_string(world_of_[first]) + " and " +
                                 std::to_string(world_of_[rank_]) + " wait for each other since " +
                                 seconds(waited) + here());
}

// A neighbour may wait for a rank of another host: then all are asked before one is blamed.
void Comm::look_beyond(const Missing& missing, int who, int64_t waited, Question& question) {
  const int dead = family_->mesh->look_around(world_of_[who], current_, waited, question);
  if (dead >= 0 && missing(0) >= 0) family_->die_of(dead, current_);
}

// Counts its own looking time only: a pause of this very process is no sign against its peers.
void Comm::await_slowly(const Missing& missing) {
  for (const int64_t begin = now_ns(); now_ns() - begin < time_to_yield_ns;) {
    sched_yield();
    if (family_->spin ? missing(0) < 0 : spin(missing, true)) return;
  }
  Member& me = segment_.member(rank_);
  const int64_t deadline = family_->deadline_of(current_);
  int64_t last = now_ns(), waited = 0, allowed = deadline, nap = ms / 2;
  Question question;
  int who = -1;
  uint64_t pulse = 0;
  for (int next; (next = missing(0)) >= 0;) {
    const uint64_t beat = segment_.member(next).pulse.load(std::memory_order_relaxed);
    if (next != who || beat != pulse) waited = 0, allowed = deadline, question = {};
    who = next;
    pulse = beat;
    me.looked_ns.store(last);
    me.waits_for.store(who);
    family_->check_alive();
    blame_dead(missing, who);
    if (family_->mesh)
      look_beyond(missing, who, waited, question);
    else if (waited > allowed)
      blame_silent(who, deadline, std::exchange(allowed, allowed + deadline));
    sleep(missing, nap);
    nap = std::min(nap * 2, 8 * ms);
    const int64_t now = now_ns();
    waited += std::min(now - last, 50 * ms);
    last = now;
  }
  me.waits_for.store(-1);
}

}  // namespace local
