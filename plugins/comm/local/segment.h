// SPDX-License-Identifier: Apache-2.0
//
// The shared memory of one communicator: who is there, what each rank has posted, and the slots and
// rings that bytes travel through. Every struct here is read by other processes: fixed-width fields
// and lock-free atomics only.
#pragma once

#include <sched.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

#include "../shared/mapping.h"
#include "../shared/operation.h"

namespace local {

using shared::Mapping;

constexpr uint64_t small_bytes = 32 << 10;   // one-shot operations: two slots per rank
constexpr uint64_t chunk_bytes = 256 << 10;  // staged operations: three slots per rank
constexpr uint64_t ring_bytes = 256 << 10;   // send and recv: one ring per ordered pair
constexpr uint64_t ring_messages = 16;       // under way in one at a time
constexpr int max_ranks = 256;

static_assert(std::atomic<uint64_t>::is_always_lock_free);

enum Path : int32_t {
  path_small = 1,   // the data lies in the rank's small slot
  path_direct = 2,  // the data stays where it is, and peers reach it there
  path_staged = 3   // the data comes in chunks
};

// Up to so many bytes a copy in the small slot is quicker than another way.
constexpr int64_t worth_posting(Path otherwise) {
  return static_cast<int64_t>(small_bytes) / (otherwise == path_direct ? 16 : 1);
}

// From so many bytes on the kernel copies from a rank's own memory faster than slots do.
constexpr int64_t worth_attaching = 8 << 10;

// A place that bytes can be fetched from: an offset in registered memory, or an address in the
// sender's own memory. Region 0 is none.
struct Place {
  static constexpr uint64_t own_memory = ~uint64_t{0};

  uint64_t region;
  uint64_t offset;

  Path path() const { return region == 0 ? path_staged : path_direct; }
  bool registered() const { return region != 0 && region != own_memory; }
  Place operator+(int64_t bytes) const { return {region, offset + static_cast<uint64_t>(bytes)}; }
};

// What a rank has posted.
struct Post {
  shared::Card card;
  int32_t path;
  uint64_t most;  // bytes of its largest piece, for movement
  Place send, recv;
};

// One rank's part of the segment. `step` counts its publications: each makes everything that the
// rank wrote before it readable, and says that the rank no longer reads what it read before.
struct alignas(128) Member {
  std::atomic<uint64_t> step;
  std::atomic<uint64_t> pulse;              // changes with every sign of life
  alignas(128) std::atomic<uint32_t> bell;  // futex; rung when something it may wait for happens
  std::atomic<uint32_t> asleep;
  std::atomic<int32_t> waits_for;  // rank, or -1
  std::atomic<int64_t> looked_ns;  // when it last looked, while waiting
  int32_t world_rank, process;
  cpu_set_t cpus;
  alignas(128) Post posts[2];  // by parity of the step
};

// Why the communicator is dead; the first writer wins and all ranks report it.
struct Poison {
  std::atomic<uint32_t> state;  // 0 healthy, 1 being written, 2 readable
  int32_t code;
  char text[752];
};

// How a message's bytes travel: beside its envelope, through the ring, or not at all: they stay in
// place until the receiver has fetched them.
enum class Way : int32_t { in_cover, in_ring, in_place };

struct Envelope {
  int64_t count;
  int32_t tag, dtype;
  Way way;
  uint32_t in_ring;  // bytes that were in the ring when the envelope was written
};

// The envelope of a message: with its number a cache line and more, of which a receiver reads the
// rest only for more than 32 bytes. The label is looked at only where the two ends differ.
struct alignas(128) Cover {
  std::atomic<uint64_t> number;  // of the message, from 1; written last
  Envelope envelope;
  union {
    Place place;
    char bytes[480];
  };
  alignas(128) shared::Label label;
};
static_assert(offsetof(Cover, label) == 512);

struct Ring {
  alignas(128) std::atomic<uint64_t> head;  // bytes ever written
  alignas(128) std::atomic<uint64_t> tail;  // bytes ever read
  std::atomic<uint64_t> taken;              // messages ever received as a whole
  Cover covers[ring_messages];              // by number
  alignas(128) char data[ring_bytes];

  Cover& cover(uint64_t number) { return covers[number % ring_messages]; }
};

struct Header {
  Poison poison;
  alignas(128) std::atomic<uint32_t> sleepers;
};

// Addresses inside a communicator's mapping, which its copies share.
class Segment {
 public:
  Segment() = default;
  Segment(Mapping mapping, int ranks)
      : mapping_(std::make_shared<Mapping>(std::move(mapping))),
        base_(mapping_->base()),
        ranks_(ranks) {}
  static uint64_t bytes(int ranks);

  Mapping& mapping() const { return *mapping_; }
  Header& header() const { return *reinterpret_cast<Header*>(base_); }
  Member& member(int r) const {
    return *reinterpret_cast<Member*>(at(head_bytes) + r * sizeof(Member));
  }
  int64_t* counts(int r, int parity) const {
    return reinterpret_cast<int64_t*>(at(counts_at()) + (r * 2 + parity) * ranks_ * 8);
  }
  char* small(int r, int parity) const { return at(small_at()) + (r * 2 + parity) * small_bytes; }
  char* chunk(int r, uint64_t turn) const {
    return at(chunk_at()) + (r * 3 + turn % 3) * chunk_bytes;
  }
  Ring& ring(int from, int to) const {
    return *reinterpret_cast<Ring*>(at(ring_at()) + (from * ranks_ + to) * sizeof(Ring));
  }

 private:
  static constexpr uint64_t head_bytes = 4096;
  static uint64_t page(uint64_t n) { return (n + 4095) / 4096 * 4096; }
  char* at(uint64_t offset) const { return base_ + offset; }
  uint64_t counts_at() const { return page(head_bytes + ranks_ * sizeof(Member)); }
  uint64_t small_at() const { return page(counts_at() + uint64_t(ranks_) * 2 * ranks_ * 8); }
  uint64_t chunk_at() const { return small_at() + ranks_ * 2 * small_bytes; }
  uint64_t ring_at() const { return chunk_at() + ranks_ * 3 * chunk_bytes; }

  std::shared_ptr<Mapping> mapping_;
  char* base_ = nullptr;
  int ranks_ = 0;
};

}  // namespace local
