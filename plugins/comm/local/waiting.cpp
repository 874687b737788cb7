// SPDX-License-Identifier: Apache-2.0
//
// Waiting for peers that may be slow, frozen or dead. Yields first, then sleeps for short times,
// and asks the job's store in between who has ended and whom to blame.
#include <sched.h>

#include <algorithm>
#include <orrery/sdk/plugin.hpp>

#include "../shared/blame.h"
#include "group.h"

namespace local {
namespace {

using shared::now_ns;

constexpr int64_t ms = 1000000;

// How long a wait gives the CPU away and looks again before it sleeps, for who sleeps is late where
// ranks share CPUs. A time, not a count: who computes on this CPU keeps it for longer than this.
constexpr int64_t time_to_yield_ns = ms / 10;

}  // namespace

// The store knows in which order ranks have ended; a connection that a peer has closed is second to
// it.
void Group::blame_dead(const Missing& missing, int first) {
  std::vector<int> absent;
  int closed = -1;
  for (int r = first; r >= 0; r = missing(r + 1)) {
    absent.push_back(world_of_[r]);
    if (has_closed(r)) closed = world_of_[r];
  }
  const int ended = shared::first_dead(family_->boot, absent), dead = ended < 0 ? closed : ended;
  if (dead < 0) return;
  for (int r = missing(first); r >= 0; r = missing(r + 1))
    if (world_of_[r] == dead) family_->die_of(ended < 0 ? family_->cause_of(dead) : dead, current_);
  // Its last words have arrived.
}

void Group::await_slowly(const Missing& missing) {
  for (const int64_t begin = now_ns(); now_ns() - begin < time_to_yield_ns;) {
    sched_yield();
    if (spins() ? missing(0) < 0 : spin(missing, true)) return;
  }
  int64_t nap = ms / 2;
  shared::Wait wait(family_->boot, current_);
  int who = -1;
  uint64_t pulse = 0;
  for (int next; (next = missing(0)) >= 0;) {
    const uint64_t beat = pulse_of(next);
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
