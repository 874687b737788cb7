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

#include "../shared/operation.h"
#include "mapping.h"

namespace local {

constexpr uint64_t small_bytes = 32 << 10;   // one-shot operations: two slots per rank
constexpr uint64_t chunk_bytes = 256 << 10;  // staged operations: three slots per rank
constexpr uint64_t part_bytes = 16 << 10;    // send and recv: of a message, at a time
constexpr uint64_t ring_parts = 16;          // under way between two ranks
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
  int32_t world_rank, process;
  cpu_set_t cpus;
  alignas(128) Post posts[2];  // by parity of the step
};

// How a rank tells its peers that it has come to an operation: to which one, and, if there is room
// behind that, with which operand. One for each parity of the step; 8 bytes travel in one cache
// line.
struct alignas(128) Notice {
  std::atomic<uint64_t> step;  // written last
  uint64_t fingerprint;
  char data[2 << 10];
};

struct MessageHeader {
  int64_t count;
  int32_t tag, dtype;
  uint32_t bytes;  // of the part beside it
  bool in_place;   // all bytes stay where they are until the receiver has fetched them
};

// Precedes a part of a message: with its number a cache line and more, of which a receiver
// reads the rest only for more than 32 bytes. The label is looked at only where the two ends
// differ.
struct alignas(128) PartHeader {
  std::atomic<uint64_t> number;  // of the part, from 1; written last
  MessageHeader message;
  union {
    Place place;
    char bytes[480];
  };
  alignas(128) shared::Label label;
};
static_assert(offsetof(PartHeader, label) == 512);

// From one rank to another: the parts of messages, by number.
struct Ring {
  alignas(128) std::atomic<uint64_t> taken;  // parts ever received
  PartHeader part_headers[ring_parts];
  alignas(128) char parts[ring_parts][part_bytes];

  PartHeader& part_header(uint64_t number) { return part_headers[number % ring_parts]; }
  // Where a part of so many bytes lies.
  char* part(uint64_t number, uint64_t bytes) {
    return bytes <= sizeof PartHeader::bytes ? part_header(number).bytes
                                             : parts[number % ring_parts];
  }
};

struct Header {
  std::atomic<uint32_t> sleepers;
};

// Addresses inside a communicator's mapping, which its copies share.
class Segment {
 public:
  Segment() = default;
  Segment(Mapping mapping, int ranks)
      : mapping_(std::make_shared<Mapping>(std::move(mapping))),
        base_(mapping_->base()),
        ranks_(ranks) {}
  static uint64_t bytes(int ranks) {
    Segment shape;
    shape.ranks_ = ranks;
    return page(shape.ring_at() + uint64_t(ranks) * ranks * sizeof(Ring));
  }

  Mapping& mapping() const { return *mapping_; }
  Header& header() const { return *reinterpret_cast<Header*>(base_); }
  Member& member(int r) const {
    return *reinterpret_cast<Member*>(at(head_bytes) + r * sizeof(Member));
  }
  int64_t* counts(int r, int parity) const {
    return reinterpret_cast<int64_t*>(at(counts_at()) + (r * 2 + parity) * ranks_ * 8);
  }
  Notice& notice(int r, uint64_t step) const {
    return *reinterpret_cast<Notice*>(at(notice_at()) + (r * 2 + (step & 1)) * sizeof(Notice));
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
  uint64_t notice_at() const { return page(counts_at() + uint64_t(ranks_) * 2 * ranks_ * 8); }
  uint64_t small_at() const { return page(notice_at() + ranks_ * 2 * sizeof(Notice)); }
  uint64_t chunk_at() const { return small_at() + ranks_ * 2 * small_bytes; }
  uint64_t ring_at() const { return chunk_at() + ranks_ * 3 * chunk_bytes; }

  std::shared_ptr<Mapping> mapping_;
  char* base_ = nullptr;
  int ranks_ = 0;
};

}  // namespace local
