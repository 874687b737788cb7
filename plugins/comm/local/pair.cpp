// SPDX-License-Identifier: Apache-2.0
//
// Send and recv: one byte ring per ordered pair of ranks. Messages of a pair keep their order; one
// whose tag is not wanted yet is set aside, so that it blocks no other.
#include "pair.h"

#include <algorithm>
#include <orrery/sdk/plugin.hpp>

#include "comm.h"
#include "ring.h"

namespace local {
namespace {

// From here on registered memory, and a sender's own, is read in place.
constexpr uint64_t direct_bytes = 32 << 10, attach_bytes = 64 << 10;

// Long messages move in pieces of at least this many bytes: both ends at work on the same few lines
// of memory would be slower than a socket.
constexpr uint64_t piece_bytes = ring_bytes / 4;

// What of the `left` bytes of a message to move now that the ring has or takes `room`.
uint64_t worth_moving(uint64_t left, uint64_t room) {
  const uint64_t n = std::min(left, room);
  return n == left || n >= piece_bytes ? n : 0;
}

uint64_t bytes_of(const orr_coll& c) {
  return static_cast<uint64_t>(c.count * orr_dtype_bytes(c.dtype));
}

// Of the message at `at`.
shared::Label read_label(const Ring& ring, uint64_t at, const Envelope& e) {
  shared::Label label{};
  ring_read(ring, at + sizeof e, label.name, e.name);
  ring_read(ring, at + sizeof e + e.name, label.where, e.where);
  return label;
}

bool match(const Transfer& t, const Envelope& e) {
  return e.count == t.coll->count && e.dtype == t.coll->dtype;
}

}  // namespace

// Every move ends a wait, so that the next one begins awake: a peer at work is heard at once. One
// that sleeps is woken before this rank waits any longer, or leaves.
void Comm::transfer(const orr_coll* ops, int n) {
  std::vector<Transfer>& all = transfers_;
  all.clear();
  for (int i = 0; i < n; ++i)
    if (shared::paired(ops[i])) all.push_back({&ops[i], ops[i].op == ORR_COLL_SEND});
  if (all.empty()) return;
  const auto missing = [&](int from) { return awaited_peer(all, from); };
  const auto missing_aloud = [&](int from) {
    const int peer = missing(from);
    if (peer < 0) ring_bells();
    return peer;
  };
  const auto open = [](const Transfer& t) { return !t.done; };
  while (std::any_of(all.begin(), all.end(), open)) {
    if (spin(missing)) continue;
    ring_bells();
    await_slowly(missing_aloud);
  }
  ring_bells();
}

// None when something could be moved.
int Comm::awaited_peer(std::vector<Transfer>& all, int from) {
  if (progress(all)) {
    show_pulse();
    return -1;
  }
  int peer = -1;
  for (const Transfer& t : all) {
    const int p = t.coll->root_or_peer;
    if (t.done || p < from || (peer >= 0 && p >= peer)) continue;
    peer = p;
    current_ = t.coll;
  }
  return peer;
}

// Moves what can be moved now; says whether anything did.
bool Comm::progress(std::vector<Transfer>& all) {
  bool moved = false;
  for (size_t i = 0; i < all.size(); ++i) {
    Transfer& t = all[i];
    if (t.done) continue;
    const int peer = t.coll->root_or_peer;
    if (!t.sends) {
      moved |= pull(peer, all);
      continue;
    }
    // Messages to one peer leave in order; a direct one leaves as soon as it is announced.
    const bool blocked = std::any_of(all.begin(), all.begin() + i, [&](const Transfer& e) {
      return e.sends && e.coll->root_or_peer == peer && !e.done && !(e.direct && e.begun);
    });
    if (!blocked) moved |= push(t);
  }
  return moved;
}

// Where the receiver is to fetch the message; none: it travels in the ring.
Place Comm::place_of_message(const orr_coll& c) const {
  const uint64_t bytes = bytes_of(c);
  if (bytes < direct_bytes) return {};
  const Place place = source_of(c.send, orr::data<char>(c.send));
  return place.registered() || bytes >= attach_bytes ? place : Place{};
}

// Returns how many bytes it took. REQUIRES: there is room.
uint64_t Comm::write_envelope(Ring& ring, uint64_t head, const orr_coll& c, Place place) {
  const shared::Label label = shared::label_of(c);
  Envelope e{};
  e.bytes = bytes_of(c);
  e.tag = c.tag;
  e.dtype = c.dtype;
  e.count = c.count;
  e.place = place;
  e.name = static_cast<uint32_t>(std::strlen(label.name));
  e.where = static_cast<uint32_t>(std::strlen(label.where));
  ring_write(ring, head, &e, sizeof e);
  ring_write(ring, head + sizeof e, label.name, e.name);
  ring_write(ring, head + sizeof e + e.name, label.where, e.where);
  return e.size();
}

// The peer's end of the ring is looked at only where there may be no room without: its line comes
// from afar.
bool Comm::push(Transfer& t) {
  const orr_coll& c = *t.coll;
  Ring& ring = segment_.ring(rank_, c.root_or_peer);
  const uint64_t bytes = bytes_of(c), most_envelope = sizeof(Envelope) + sizeof(shared::Label);
  uint64_t head = ring.head.load(std::memory_order_relaxed), &tail = tails_[c.root_or_peer];
  if (t.begun || head + most_envelope + bytes - tail > ring_bytes)
    tail = ring.tail.load(std::memory_order_acquire);
  if (t.begun && t.direct) {
    t.done = tail >= t.end;
    return t.done;
  }
  const uint64_t before = head;
  if (!t.begun) {
    if (ring_bytes - (head - tail) < most_envelope) return false;
    const Place place = place_of_message(c);
    t.direct = place.region != 0;
    head += write_envelope(ring, head, c, place);
    t.begun = true;
    t.end = head;
  }
  if (!t.direct) {
    const uint64_t n = worth_moving(bytes - t.moved, ring_bytes - (head - tail));
    if (n > 0) ring_write(ring, head, orr::data<char>(c.send) + t.moved, n);
    head += n;
    t.moved += n;
    t.done = t.moved == bytes;
  }
  ring.head.store(head, std::memory_order_release);
  return head != before;
}

bool Comm::pull(int from, std::vector<Transfer>& all) {
  bool moved = false;
  for (;;) {
    bool wanted = false;
    for (Transfer& t : all)
      if (!t.sends && !t.done && !t.begun && t.coll->root_or_peer == from) {
        const bool taken = take_stray(t);
        moved |= taken;
        wanted |= !taken;
      }
    Inbound& in = inbound_[from];
    if (!in.open && !(wanted && begin_message(from, all))) return moved;
    if (!receive(from)) return moved;
    moved = true;
  }
}

// A message with this tag that came early, if all of it is here.
bool Comm::take_stray(Transfer& t) {
  auto& strays = inbound_[t.coll->root_or_peer].strays;
  auto found = std::find_if(strays.begin(), strays.end(),
                            [&](const Stray& s) { return s.envelope.tag == t.coll->tag; });
  if (found == strays.end() || !found->complete) return false;
  if (!match(t, found->envelope)) refuse(t, found->envelope, found->label);
  if (!found->bytes.empty())
    std::memcpy(orr::data<char>(t.coll->recv), found->bytes.data(), found->bytes.size());
  t.done = true;
  strays.erase(found);
  return true;
}

bool Comm::begin_message(int from, std::vector<Transfer>& all) {
  Ring& ring = segment_.ring(from, rank_);
  const uint64_t tail = ring.tail.load(std::memory_order_relaxed);
  if (ring.head.load(std::memory_order_acquire) - tail < sizeof(Envelope)) return false;
  Inbound& in = inbound_[from];
  ring_read(ring, tail, &in.envelope, sizeof in.envelope);
  in.open = true;
  in.got = 0;
  auto taker = std::find_if(all.begin(), all.end(), [&](const Transfer& t) {
    return !t.sends && !t.done && !t.begun && t.coll->root_or_peer == from &&
           t.coll->tag == in.envelope.tag;
  });
  if (taker != all.end()) {
    if (!match(*taker, in.envelope))
      refuse(*taker, in.envelope, read_label(ring, tail, in.envelope));
    taker->begun = true;
    in.transfer = &*taker;
    in.to = taker->coll->recv.memory ? orr::data<char>(taker->coll->recv) : nullptr;
  } else {
    in.strays.push_back(
        {in.envelope, read_label(ring, tail, in.envelope), std::vector<char>(in.envelope.bytes)});
    in.transfer = nullptr;
    in.to = in.strays.back().bytes.data();
  }
  if (!in.envelope.place.region)
    ring.tail.store(tail + in.envelope.size(), std::memory_order_release);
  return true;
}

// Takes what has come of the open message; says whether anything had, or the message is complete.
bool Comm::receive(int from) {
  Inbound& in = inbound_[from];
  Ring& ring = segment_.ring(from, rank_);
  uint64_t tail = ring.tail.load(std::memory_order_relaxed);
  uint64_t n = in.envelope.bytes - in.got;
  if (in.envelope.place.region) {
    fetch(in.to, in.envelope.place, from, n);
    tail += in.envelope.size();
  } else {
    n = worth_moving(n, ring.head.load(std::memory_order_acquire) - tail);
    if (n > 0) ring_read(ring, tail, in.to + in.got, n, in.envelope.bytes);
    tail += n;
  }
  ring.tail.store(tail, std::memory_order_release);
  in.got += n;
  if (in.got < in.envelope.bytes) return n > 0;
  if (in.transfer)
    in.transfer->done = true;
  else
    in.strays.back().complete = true;
  in.open = false;
  return true;
}

void Comm::refuse(const Transfer& t, const Envelope& e, const shared::Label& label) {
  const orr_coll& c = *t.coll;
  poison(ORR_FAILED,
         shared::unequal_ends(world_of_[c.root_or_peer],
                              shared::end_of_message(e.count, e.dtype, label), world_of_[rank_],
                              shared::end_of_message(c.count, c.dtype, shared::label_of(c))));
  family_->check_alive();
}

}  // namespace local
