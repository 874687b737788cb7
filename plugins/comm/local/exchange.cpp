// SPDX-License-Identifier: Apache-2.0
//
// Posting an operation: is it well-formed here, and do all ranks post the same one? The answer to
// the second question costs nothing extra, for it travels with the first publication of the data:
// as a fingerprint; the cards that say what it was are written only when fingerprints differ.
#include <orrery/sdk/plugin.hpp>

#include "comm.h"
#include "slots.h"

namespace local {

void Comm::announce(const orr_coll& c, Path path, uint64_t most, Place send, Place recv) {
  Post& p = segment_.member(rank_).posts[(step_ + 1) & 1];
  p.path = path;
  p.most = most;
  p.send = send;
  p.recv = recv;
  meet(c, nullptr, 0);
}

// A step whose publication is the rank's notice. A peer that sleeps has written its own before, so
// that bells can wait until this rank has looked: the fence before them then finds the store done.
void Comm::meet(const orr_coll& c, const void* data, uint64_t bytes) {
  ++step_;
  Notice& mine = notice(rank_);
  if (bytes > 0) std::memcpy(mine.data, data, bytes);
  mine.fingerprint = shared::fingerprint(c, size_);
  show_pulse();
  mine.step.store(step_, std::memory_order_release);
  const auto missing = [this](int from) {
    for (int r = from; r < size_; ++r)
      if (notice(r).step.load(std::memory_order_acquire) < step_) return r;
    return -1;
  };
  const bool met = spin(missing, true);
  ring_bells();
  if (!met) await_slowly(missing);
  claim(&segment_.notice(rank_, step_ + 1));
  for (int r = 1; r < size_; ++r)
    if (notice(r).fingerprint != notice(0).fingerprint) tell_apart(c);
}

// All ranks see the same notices, so that all come here, see the same cards and say the same.
void Comm::tell_apart(const orr_coll& c) {
  segment_.member(rank_).posts[(step_ + 1) & 1].card = shared::card_of(c, size_);
  publish();
  await_step();
  std::vector<shared::Card> cards;
  for (int r = 0; r < size_; ++r) cards.push_back(post_of(r).card);
  family_->die(ORR_FAILED, shared::disagreement(cards, world_of_));
}

void Comm::collective(const orr_coll& c) {
  current_ = &c;
  if (is_brief(c, size_)) return brief(c);
  switch (c.op) {
    case ORR_COLL_BROADCAST:
    case ORR_COLL_ALL_GATHER:
    case ORR_COLL_ALL_TO_ALL: move(c); break;
    default: reduce(c);
  }
}

}  // namespace local
