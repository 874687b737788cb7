// SPDX-License-Identifier: Apache-2.0
//
// Messages in shared memory: a ring of bytes for each ordered pair of ranks. What is long stays
// where it is, if the receiver can fetch it there.
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "comm.h"
#include "slots.h"

namespace local {
namespace {

// From so many bytes on registered memory is read in place, and a rank's own.
constexpr uint64_t worth_fetching = 4 << 10, worth_attaching = 8 << 10;

void futex(std::atomic<uint32_t>& word, int op, uint32_t value, const timespec* timeout) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), op, value, timeout, nullptr, 0);
}

}  // namespace

// The peer's end of the ring is looked at only where there may be no room without: reading it takes
// a cache line from the other CPU.
uint64_t Comm::write(int peer, const iovec* from, int n) {
  Ring& ring = segment_.ring(rank_, peer);
  Stream& s = streams_[peer];
  uint64_t all = 0, at = 0;  // bytes, of all and of the first that are left
  while (n > 0) {
    if (s.sent - s.seen_taken == ring_parts)
      s.seen_taken = ring.taken.load(std::memory_order_acquire);
    if (s.sent - s.seen_taken == ring_parts) break;
    Part& part = ring.parts[++s.sent % ring_parts];
    part.bytes = 0;
    while (n > 0 && part.bytes < part_bytes) {
      const uint64_t step = std::min(from->iov_len - at, part_bytes - part.bytes);
      put(part.data + part.bytes, static_cast<const char*>(from->iov_base) + at, step);
      part.bytes += step;
      at += step;
      if (at == from->iov_len) ++from, --n, at = 0;
    }
    all += part.bytes;
    part.number.store(s.sent, std::memory_order_release);
    claim(&ring.parts[(s.sent + 1) % ring_parts]);
  }
  return all;
}

uint64_t Comm::read(int peer, void* to, uint64_t bytes) {
  Ring& ring = segment_.ring(peer, rank_);
  Stream& s = streams_[peer];
  const Part& part = ring.parts[(s.taken + 1) % ring_parts];
  if (part.number.load(std::memory_order_acquire) != s.taken + 1) return 0;
  const uint64_t step = std::min(bytes, part.bytes - s.got);
  if (to) take(to, part.data + s.got, step, bytes);
  s.got += step;
  if (s.got == part.bytes) {
    s.got = 0;
    ring.taken.store(++s.taken, std::memory_order_release);
  }
  return step;
}

Place Comm::place_of_message(const char* data, uint64_t bytes) const {
  return bytes < worth_fetching ? Place{} : place_of(data, bytes >= worth_attaching);
}

void Comm::fetch_message(int peer, const Place& place, void* to, uint64_t bytes) {
  fetch(place, peer, to, bytes);
  segment_.ring(peer, rank_).fetched.fetch_add(1, std::memory_order_release);
}

uint64_t Comm::fetched(int peer) const {
  return segment_.ring(rank_, peer).fetched.load(std::memory_order_acquire);
}

uint64_t Comm::pulse_of(int r) const {
  return segment_.member(r).pulse.load(std::memory_order_relaxed);
}

void Comm::show_pulse() {
  std::atomic<uint64_t>& pulse = segment_.member(rank_).pulse;
  pulse.store(pulse.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

// A store to our notice, pulse or a ring must be visible before the sleepers are looked at; a
// sleeper looks at them again after it has said that it sleeps.
void Comm::ring_bells() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (segment_.sleepers().load(std::memory_order_relaxed) == 0) return;
  for (int r = 0; r < size_; ++r) {
    Member& m = segment_.member(r);
    if (r == rank_ || !m.asleep.load(std::memory_order_relaxed)) continue;
    m.bell.fetch_add(1, std::memory_order_release);
    futex(m.bell, FUTEX_WAKE, 1, nullptr);
  }
}

void Comm::sleep(const Missing& missing, int64_t ns) {
  Member& me = segment_.member(rank_);
  const uint32_t bell = me.bell.load(std::memory_order_acquire);
  me.asleep.store(1);
  segment_.sleepers().fetch_add(1);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const timespec timeout{0, ns};
  if (missing(0) >= 0) futex(me.bell, FUTEX_WAIT, bell, &timeout);
  segment_.sleepers().fetch_sub(1);
  me.asleep.store(0);
}

}  // namespace local
