// SPDX-License-Identifier: Apache-2.0
//
// Do all ranks post the same operation? The answer costs nothing extra, for it travels with the
// first step: as a fingerprint; what it was is told only when fingerprints differ. Small operands
// travel there, too.
#include <algorithm>
#include <cstring>
#include <orrery/sdk/descriptor.hpp>
#include <orrery/sdk/plugin.hpp>
#include <orrery/sdk/traffic.hpp>

#include "comm.h"
#include "slots.h"

namespace local {
namespace {

// Broadcasts and gathers of so many bytes travel in the notice: ranks that share CPUs wait longer
// for one more step than for a copy.
constexpr uint64_t copied_bytes = 4 << 10, copied_bytes_on_shared_cpus = small_bytes;

// Elements of the largest operand; the same on all ranks that post the same operation.
int64_t most_elements(const orr_coll& c, int ranks) {
  if (c.op == ORR_COLL_BARRIER) return 0;
  if (c.op == ORR_COLL_REDUCE_SCATTER) return orr::traffic::sum(c.counts, ranks);
  if (c.op == ORR_COLL_ALL_GATHER) return *std::max_element(c.counts, c.counts + ranks);
  return c.count;
}

}  // namespace

// A peer that sleeps has published its own step before, so that bells can wait until this rank has
// looked: the fence before them then finds the store done.
void Comm::step(uint64_t fingerprint, bool in_place, const void* data, uint64_t bytes) {
  ++step_;
  Notice& mine = notice(rank_);
  if (bytes > 0) put(mine.data, data, bytes);
  mine.fingerprint = fingerprint;
  mine.in_place = in_place;
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
}

// The first step of an operation.
void Comm::meet(const orr_coll& c, bool in_place, const void* data, uint64_t bytes) {
  step(shared::fingerprint(c, size_), in_place, data, bytes);
  for (int r = 1; r < size_; ++r)
    if (notice(r).fingerprint != notice(0).fingerprint) tell_apart(c);
}

// All ranks see the same notices, so that all come here, see the same cards and say the same.
void Comm::tell_apart(const orr_coll& c) {
  const shared::Card mine = shared::card_of(c, size_);
  step(0, false, &mine, sizeof mine);
  std::vector<shared::Card> cards(size_);
  for (int r = 0; r < size_; ++r) std::memcpy(&cards[r], notice(r).data, sizeof mine);
  family_->die(ORR_FAILED, shared::disagreement(cards, world_of_));
}

int Comm::ranks_in_place() const {
  int n = 0;
  for (int r = 0; r < size_; ++r) n += notice(r).in_place;
  return n;
}

void Comm::collective(const orr_coll& c) {
  current_ = &c;
  const uint64_t bytes = static_cast<uint64_t>(most_elements(c, size_) * orr_dtype_bytes(c.dtype));
  if (!orr::adds(c.op)) return move(c, bytes);
  if (size_ == 1 || bytes > brief_bytes || orr::traffic::is_tree(c.op)) return reduce(c);
  meet(c, false, address_of(c.send), bytes);
  fold_brief(c);
}

void Comm::move(const orr_coll& c, uint64_t most) {
  const bool trades = c.op == ORR_COLL_ALL_TO_ALL;
  const bool small = !trades && most <= (spins() ? copied_bytes : copied_bytes_on_shared_cpus);
  const uint64_t given =
      static_cast<uint64_t>(orr::traffic::extent(c, rank_, size_).in * orr_dtype_bytes(c.dtype));
  const char* const send = address_of(c.send);
  const Places mine{small || trades ? Place{} : place_of(send, true), {}};
  if (mine.send.exists() || (given == 0 && !small && !trades))
    meet(c, true, &mine, sizeof mine);
  else
    meet(c, false, send, small ? given : 0);
  const bool reachable = ranks_in_place() == size_;
  if (!small && !reachable) return orr::exchange::move(c, rank_, size_, *this);
  copy_from_all(c, send);
  if (reachable) step(0, false, nullptr, 0);  // nobody reads `send` any more
}

// Of a broadcast or a gather, what lies in the notices or where these say.
void Comm::copy_from_all(const orr_coll& c, const char* send) {
  if (c.op == ORR_COLL_BARRIER || !c.recv.memory) return;
  const int64_t unit = orr_dtype_bytes(c.dtype);
  char* to = orr::data<char>(c.recv);
  const bool gathers = c.op == ORR_COLL_ALL_GATHER;
  for (int r = gathers ? 0 : c.root_or_peer, end = gathers ? size_ : r + 1; r < end; ++r) {
    const uint64_t n = static_cast<uint64_t>((gathers ? c.counts[r] : c.count) * unit);
    if (!notice(r).in_place)
      std::memcpy(to, notice(r).data, n);
    else if (r != rank_)
      fetch(notice(r).places().send, r, to, n);
    else if (to != send)
      std::memmove(to, send, n);
    to += n;
  }
}

// In rank order, like every fold; takes no memory from the heap.
void Comm::fold_brief(const orr_coll& c) {
  const bool scatters = c.op == ORR_COLL_REDUCE_SCATTER;
  const int64_t n = scatters ? c.counts[rank_] : c.count;
  if (n == 0 || (c.op == ORR_COLL_REDUCE && rank_ != c.root_or_peer)) return;
  const int64_t from = scatters ? orr::traffic::sum(c.counts, rank_) * orr_dtype_bytes(c.dtype) : 0;
  const void* in[max_ranks];
  for (int r = 0; r < size_; ++r) in[r] = notice(r).data + from;
  orr::fold_for(c.dtype, c.redop)(address_of(c.recv), in, size_, n);
}

}  // namespace local
