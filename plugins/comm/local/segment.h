// SPDX-License-Identifier: Apache-2.0
//
// The shared memory of one communicator: who is there, what each rank has posted, and the rings
// that messages travel through. Every struct here is read by other processes: fixed-width fields
// and lock-free atomics only.
#pragma once

#include <sched.h>

#include <atomic>
#include <cstdint>
#include <utility>

#include "mapping.h"

namespace local {

constexpr uint64_t small_bytes = 32 << 10;  // of an operand that may travel in the notice
constexpr uint64_t brief_bytes = 2 << 10;  // of one that does, though peers could reach it in place
constexpr uint64_t part_bytes = 16 << 10;  // of a stream of messages, at a time
constexpr uint64_t ring_parts = 16;        // under way between two ranks
constexpr int max_ranks = 256;

static_assert(std::atomic<uint64_t>::is_always_lock_free);

// A place that peers can reach: an offset in registered memory, or an address in a rank's own
// memory. Region 0 is none.
struct Place {
  static constexpr uint64_t own_memory = ~uint64_t{0};

  uint64_t region, offset;

  bool exists() const { return region != 0; }
  bool registered() const { return region != 0 && region != own_memory; }
  Place operator+(int64_t bytes) const { return {region, offset + static_cast<uint64_t>(bytes)}; }
};

// Of the operands of a collective.
struct Places {
  Place send, recv;
};

struct alignas(128) Member {
  std::atomic<uint64_t> pulse;              // changes with every sign of life
  alignas(128) std::atomic<uint32_t> bell;  // futex; rung when something it may wait for happens
  std::atomic<uint32_t> asleep;
  int32_t process;
  cpu_set_t cpus;
};

// How a rank tells its peers that it has come to a step: everything that it wrote before is
// readable, and what it read before it no longer reads. One for each parity of the step; 8 bytes of
// data travel in one cache line.
struct alignas(128) Notice {
  std::atomic<uint64_t> step;  // written last
  uint64_t fingerprint;        // of the operation that begins with this step
  bool in_place;               // its operands stay where they are; the data are Places
  alignas(8) char data[small_bytes];

  const Places& places() const { return *reinterpret_cast<const Places*>(data); }
};

// A short message travels in one cache line, its number with it.
struct alignas(128) Part {
  std::atomic<uint64_t> number;  // of the part, from 1; written last
  uint64_t bytes;
  char data[part_bytes];
};

// The stream of messages from one rank to another.
struct Ring {
  alignas(128) std::atomic<uint64_t> taken;  // parts ever
  std::atomic<uint64_t> fetched;             // messages ever that stayed in place
  Part parts[ring_parts];
};

// Addresses inside a communicator's mapping.
class Segment {
 public:
  Segment() = default;
  Segment(Mapping mapping, int ranks) : mapping_(std::move(mapping)), ranks_(ranks) {}
  static uint64_t bytes(int ranks) {
    return rings_at(ranks) + uint64_t(ranks) * ranks * sizeof(Ring);
  }

  Mapping& mapping() { return mapping_; }
  std::atomic<uint32_t>& sleepers() const { return *at<std::atomic<uint32_t>>(0); }
  Member& member(int r) const { return at<Member>(members_at)[r]; }
  Notice& notice(int r, uint64_t step) const {
    return at<Notice>(notices_at(ranks_))[r * 2 + (step & 1)];
  }
  Ring& ring(int from, int to) const { return at<Ring>(rings_at(ranks_))[from * ranks_ + to]; }

 private:
  static constexpr uint64_t members_at = 4096;
  static uint64_t notices_at(int ranks) { return members_at + ranks * sizeof(Member); }
  static uint64_t rings_at(int ranks) { return notices_at(ranks) + ranks * 2 * sizeof(Notice); }
  template <class T>
  T* at(uint64_t offset) const {
    return reinterpret_cast<T*>(mapping_.base() + offset);
  }

  Mapping mapping_;
  int ranks_ = 0;
};

}  // namespace local
