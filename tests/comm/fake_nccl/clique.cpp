// SPDX-License-Identifier: Apache-2.0
#include "clique.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>

#include "misuse.h"
#include "place.h"

namespace fake {
namespace {

constexpr uint64_t ring_bytes = 256 << 10;
constexpr uint64_t card_places = 4;  // no rank is more than one position ahead of another
constexpr uint64_t long_bytes = ring_bytes / 2;  // from here on the receiver reads by itself
constexpr uint64_t piece_bytes = 8 << 20;        // between two looks at who else is to be served

}  // namespace

// One writer, one reader. Positions only grow.
struct Ring {
  std::atomic<uint64_t> written, read;
  std::atomic<uint64_t> wanted;  // messages for which a receiver has come
  uint64_t sent, lent;           // messages begun, long transfers begun; the writer's
  std::atomic<uint64_t> taken;   // of those lent
  char bytes[ring_bytes];
};

struct Member {
  std::atomic<int32_t> come, left;
  std::atomic<int32_t> blocked_on;  // 1 + the rank for which a message outside of a group waits
  int32_t device;
  uint64_t host;
  std::atomic<uint64_t> position;
  Card cards[card_places];
};

struct Segment {
  Member members[max_ranks];
  Ring rings[max_ranks * max_ranks];
};

namespace {

struct Frame {
  uint64_t message, bytes;
  const char* data;
  int64_t sender;
};

std::string said(const Card& c, int rank) {
  return "rank " + std::to_string(rank) + " " + c.name + " of " + std::to_string(c.count) +
         ", type " + std::to_string(c.dtype) + ", op " + std::to_string(c.redop) + ", root " +
         std::to_string(c.root);
}

// Whether what does not fit hangs, as in the real library, instead of ending by name.
bool hangs() {
  static const bool told = std::getenv("FAKE_NCCL_HANG");
  return told;
}

bool alike(const Card& a, const Card& b) {
  return std::strcmp(a.name, b.name) == 0 && a.dtype == b.dtype && a.redop == b.redop &&
         a.root == b.root && a.count == b.count;
}

}  // namespace

Clique::Clique(const std::string& name, int rank, int ranks, int device,
               const std::atomic<bool>& stop)
    : name_("/fake-nccl-" + name), rank_(rank), ranks_(ranks), stop_(stop) {
  if (ranks > max_ranks) misuse("too many ranks for the fake", std::to_string(ranks));
  const int fd = shm_open(name_.c_str(), O_RDWR | O_CREAT, 0600);
  if (fd < 0 || ftruncate(fd, sizeof(Segment))) misuse("no shared memory", name_);
  segment_ = static_cast<Segment*>(
      mmap(nullptr, sizeof(Segment), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
  close(fd);
  Member& me = segment_->members[rank];
  me.device = device;
  me.host = place().host;
  if (me.come.exchange(1)) misuse("two ranks of one number", "rank " + std::to_string(rank));
  for (int r = 0, turns = 0; r < ranks; ++r)
    while (!segment_->members[r].come)
      if (!pause(turns)) return;
  complete_ = true;
  shm_unlink(name_.c_str());  // by each: any of them may be killed next
}

Clique::~Clique() {
  if (!complete_) shm_unlink(name_.c_str());
  munmap(segment_, sizeof(Segment));
}

std::string Clique::shared_device() const {
  std::map<std::pair<uint64_t, int>, int> first;
  for (int r = 0; r < ranks_; ++r) {
    const Member& m = segment_->members[r];
    if (auto [at, fresh] = first.emplace(std::pair(m.host, m.device), r); !fresh)
      return "Duplicate GPU detected : rank " + std::to_string(at->second) + " and rank " +
             std::to_string(r) + " both on CUDA device " + std::to_string(m.device);
  }
  return "";
}

bool Clique::spans_hosts() const {
  return std::any_of(segment_->members, segment_->members + ranks_,
                     [&](const Member& m) { return m.host != segment_->members[0].host; });
}

Ring& Clique::ring(int from, int to) const { return segment_->rings[from * max_ranks + to]; }

// Between two looks at what others do. False when stopped.
bool Clique::pause(int& turns) const {
  if (stop_) return false;
  ++turns < 50 ? static_cast<void>(sched_yield()) : static_cast<void>(usleep(50));
  return true;
}

std::vector<Card> Clique::agree(const Card& mine) {
  const uint64_t now = ++position_;
  Member& me = segment_->members[rank_];
  me.cards[now % card_places] = mine;
  me.position.store(now, std::memory_order_release);
  std::vector<Card> all;
  for (int r = 0, turns = 0; r < ranks_; ++r) {
    Member& other = segment_->members[r];
    while (other.position.load(std::memory_order_acquire) < now)
      if (!pause(turns)) return {};
    all.push_back(other.cards[now % card_places]);
  }
  for (int r = 0, turns = 0; r < ranks_; ++r) {
    if (alike(all[0], all[r])) continue;
    while (hangs())
      if (!pause(turns)) return {};
    misuse("mismatched order between ranks",
           "in position " + std::to_string(now) + " " + said(all[0], 0) + "; " + said(all[r], r));
  }
  return all;
}

bool Clique::push(Transfer& t) {
  Ring& to = ring(rank_, t.peer);
  if (!t.begun) {
    const Frame frame{t.message, t.bytes, t.data, getpid()};
    const uint64_t at = to.written;
    if (t.message && to.wanted.load(std::memory_order_acquire) <= to.sent) return false;
    if (ring_bytes - (at - to.read.load(std::memory_order_acquire)) < sizeof frame) return false;
    for (size_t i = 0; i < sizeof frame; ++i)
      to.bytes[(at + i) % ring_bytes] = reinterpret_cast<const char*>(&frame)[i];
    to.written.store(at + sizeof frame, std::memory_order_release);
    to.sent += t.message;
    if (t.bytes >= long_bytes) t.lent = ++to.lent;
    return t.begun = true;
  }
  if (t.lent) {
    if (to.taken.load(std::memory_order_acquire) < t.lent) return false;
    t.done = t.bytes;
    return true;
  }
  const uint64_t at = to.written,
                 room = ring_bytes - (at - to.read.load(std::memory_order_acquire));
  const uint64_t n = std::min({room, t.bytes - t.done, ring_bytes - at % ring_bytes});
  std::memcpy(to.bytes + at % ring_bytes, t.data + t.done, n);
  to.written.store(at + n, std::memory_order_release);
  t.done += n;
  return n > 0;
}

// A sender that has ended moves nothing any more, as one that is late.
bool Clique::fetch(Transfer& t, Ring& from) const {
  const size_t wanted = std::min(piece_bytes, t.bytes - t.done);
  const iovec here{t.data + t.done, wanted}, there{const_cast<char*>(t.there) + t.done, wanted};
  const ssize_t got = process_vm_readv(t.sender, &here, 1, &there, 1, 0);
  if (got <= 0) return false;
  t.done += static_cast<uint64_t>(got);
  if (t.done == t.bytes) from.taken.fetch_add(1, std::memory_order_release);
  return true;
}

bool Clique::pull(Transfer& t) {
  Ring& from = ring(t.peer, rank_);
  const uint64_t at = from.read, come = from.written.load(std::memory_order_acquire) - at;
  if (!t.begun) {
    Frame frame;
    if (come < sizeof frame) return false;
    for (size_t i = 0; i < sizeof frame; ++i)
      reinterpret_cast<char*>(&frame)[i] = from.bytes[(at + i) % ring_bytes];
    const bool fits = frame.bytes == t.bytes && frame.message == t.message;
    if (!fits && hangs()) return false;
    if (!fits)
      misuse("unequal ends of a message",
             "rank " + std::to_string(t.peer) + " sends " + std::to_string(frame.bytes) +
                 " bytes, rank " + std::to_string(rank_) + " receives " + std::to_string(t.bytes));
    from.read.store(at + sizeof frame, std::memory_order_release);
    t.sender = static_cast<int32_t>(frame.sender), t.there = frame.data;
    return t.begun = true;
  }
  if (t.bytes >= long_bytes) return fetch(t, from);
  const uint64_t n = std::min({come, t.bytes - t.done, ring_bytes - at % ring_bytes});
  std::memcpy(t.data + t.done, from.bytes + at % ring_bytes, n);
  from.read.store(at + n, std::memory_order_release);
  t.done += n;
  return n > 0;
}

// Ranks that wait for each other with messages outside of a group: nobody will ever go on.
void Clique::look_for_cycle(const Transfer& mine) const {
  std::string path = std::to_string(rank_);
  int r = mine.peer;
  for (int steps = 0; steps < ranks_ && r != rank_; ++steps) {
    const int next = segment_->members[r].blocked_on;
    if (next == 0) return;
    path += " -> " + std::to_string(r);
    r = next - 1;
  }
  if (r == rank_ && mine.peer != rank_)
    misuse("messages outside of a group block each other",
           "ranks " + path + " -> " + std::to_string(rank_));
}

bool Clique::move(std::vector<Transfer>& all, bool alone) {
  std::map<std::pair<int, bool>, std::deque<Transfer*>> queues;
  for (Transfer& t : all) {
    queues[{t.peer, t.out}].push_back(&t);
    if (t.message && !t.out) ring(t.peer, rank_).wanted.fetch_add(1, std::memory_order_release);
  }
  std::atomic<int32_t>& blocked = segment_->members[rank_].blocked_on;
  for (int turns = 0; !queues.empty();) {
    bool moved = false;
    for (auto& [where, queue] : queues) {
      Transfer& t = *queue.front();
      moved |= t.out ? push(t) : pull(t);
      if (t.begun && t.done == t.bytes) queue.pop_front(), moved = true;
    }
    std::erase_if(queues, [](const auto& q) { return q.second.empty(); });
    if (moved) {
      turns = 0;
      continue;
    }
    if (alone && turns > 200 && !all.front().begun) {
      blocked = 1 + all.front().peer;
      look_for_cycle(all.front());
    }
    if (!pause(turns)) return false;
  }
  blocked = 0;
  return true;
}

bool Clique::leave() {
  segment_->members[rank_].left = 1;
  for (int r = 0, turns = 0; r < ranks_; ++r)
    while (!segment_->members[r].left)
      if (!pause(turns)) return false;
  return true;
}

}  // namespace fake
