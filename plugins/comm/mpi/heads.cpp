// SPDX-License-Identifier: Apache-2.0
#include "heads.h"

#include "../shared/claim.h"

namespace mpi {
namespace {

struct alignas(128) Slot {
  std::atomic<uint64_t> number;  // of the head, from 1; written last
  Head head;
  alignas(128) std::atomic<uint64_t> back;  // twice the last loan's number that came, + 1 unused
};
static_assert(std::atomic<uint64_t>::is_always_lock_free);

}  // namespace

struct Heads::Lane {
  alignas(128) std::atomic<uint64_t> taken;  // heads
  alignas(128) std::atomic<bool> closed;
  Slot ring[slots];

  Slot& slot(uint64_t number) { return ring[number % slots]; }
};

uint64_t Heads::bytes(int ranks) {
  return static_cast<uint64_t>(ranks) * static_cast<uint64_t>(ranks) * sizeof(Lane);
}

Heads::Lane& Heads::lane(int from, int to) const {
  return reinterpret_cast<Lane*>(base_)[static_cast<size_t>(from) * ends_.size() + to];
}

// The peer's count is looked at only where there may be no room: its line comes from afar.
Head* Heads::place(int peer) {
  End& end = ends_[peer];
  Lane& to = lane(rank_, peer);
  if (end.sent - end.seen == slots) end.seen = to.taken.load(std::memory_order_acquire);
  if (end.sent - end.seen == slots) return nullptr;
  return &to.slot(end.sent + 1).head;
}

void Heads::send(int peer, bool lends) {
  const uint64_t number = ++ends_[peer].sent;
  if (lends) ends_[peer].loans[number % slots] = number;
  lane(rank_, peer).slot(number).number.store(number, std::memory_order_release);
  shared::claim(&lane(rank_, peer).slot(number + 1));
}

Back Heads::back(int peer, uint64_t number) {
  const uint64_t last = lane(rank_, peer).slot(number).back.load(std::memory_order_acquire);
  if (last / 2 != number) return Back::no;
  ends_[peer].loans[number % slots] = 0;
  return last % 2 == 0 ? Back::used : Back::unused;
}

void Heads::close() {
  for (size_t r = 0; r < ends_.size(); ++r) lane(rank_, static_cast<int>(r)).closed = true;
}

const Head* Heads::find(int peer) const {
  const uint64_t number = ends_[peer].taken + 1;
  const Slot& slot = lane(peer, rank_).slot(number);
  return slot.number.load(std::memory_order_acquire) == number ? &slot.head : nullptr;
}

void Heads::take(int peer) {
  lane(peer, rank_).taken.store(++ends_[peer].taken, std::memory_order_release);
}

bool Heads::is_closed(int peer) const {
  return lane(peer, rank_).closed.load(std::memory_order_acquire);
}

void Heads::give_back(int peer, uint64_t number, bool was_used) {
  lane(peer, rank_).slot(number).back.store(2 * number + !was_used, std::memory_order_release);
}

}  // namespace mpi
