// SPDX-License-Identifier: Apache-2.0
//
// Send and recv: one ring per ordered pair of ranks. Messages of a pair keep their order; one whose
// tag is not wanted yet is set aside, so that it blocks no other.
#include "pair.h"

#include <algorithm>
#include <orrery/sdk/plugin.hpp>

#include "comm.h"
#include "ring.h"

namespace local {
namespace {

// From here on registered memory is read in place.
constexpr uint64_t direct_bytes = 4 << 10;

// Long messages move in pieces of at least this many bytes: both ends at work on the same few lines
// of memory would be slower than a socket.
constexpr uint64_t piece_bytes = ring_bytes / 4;

// What of the `left` bytes of a message to move now that the ring has or takes `room`.
uint64_t worth_moving(uint64_t left, uint64_t room) {
  const uint64_t n = std::min(left, room);
  return n == left || n >= piece_bytes ? n : 0;
}

uint64_t bytes_of(int64_t count, int32_t dtype) {
  return static_cast<uint64_t>(count * orr_dtype_bytes(dtype));
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
    if (spin(missing, false)) continue;
    ring_bells();
    await_slowly(missing_aloud);
  }
  ring_bells();
  for (const Transfer& t : all)
    if (const int peer = t.coll->root_or_peer; t.sends)
      shared::claim(&segment_.ring(rank_, peer).cover(outbound_[peer].sent + 1));
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
    // Messages to one peer leave in order; one in place leaves as soon as it is announced.
    const bool blocked = std::any_of(all.begin(), all.begin() + i, [&](const Transfer& e) {
      return e.sends && e.coll->root_or_peer == peer && !e.done &&
             !(e.begun && e.way == Way::in_place);
    });
    if (!blocked) moved |= push(t);
  }
  return moved;
}

// Where the receiver is to fetch the message; none: it travels in the ring.
Place Comm::place_of_message(const orr_coll& c) const {
  const uint64_t bytes = bytes_of(c.count, c.dtype);
  if (bytes < direct_bytes) return {};
  const Place place = source_of(c.send, orr::data<char>(c.send));
  return place.registered() || static_cast<int64_t>(bytes) >= worth_attaching ? place : Place{};
}

// The peer's end of the ring is looked at only where there may be no room without: its line comes
// from afar.
bool Comm::push(Transfer& t) {
  Ring& ring = segment_.ring(rank_, t.coll->root_or_peer);
  if (!t.begun) return begin_send(t);
  if (t.way == Way::in_place) {
    t.done = ring.taken.load(std::memory_order_acquire) >= t.number;
    return t.done;
  }
  const uint64_t before = t.moved;
  feed(t);
  return t.moved != before;
}

// Says whether there was room for the envelope.
bool Comm::begin_send(Transfer& t) {
  const orr_coll& c = *t.coll;
  const int peer = c.root_or_peer;
  Ring& ring = segment_.ring(rank_, peer);
  Outbound& out = outbound_[peer];
  if (out.sent - out.taken == ring_messages) out.taken = ring.taken.load(std::memory_order_acquire);
  if (out.sent - out.taken == ring_messages) return false;
  t.number = ++out.sent;
  t.begun = true;
  Cover& cover = ring.cover(t.number);
  Envelope& e = cover.envelope;
  const uint64_t bytes = bytes_of(c.count, c.dtype);
  const Place place = place_of_message(c);
  e.count = c.count, e.tag = c.tag, e.dtype = c.dtype;
  if (place.region != 0) {
    t.way = Way::in_place;
    cover.place = place;
  } else if (bytes <= sizeof cover.bytes) {
    if (bytes > 0) std::memcpy(cover.bytes, orr::data<char>(c.send), bytes);
    t.done = true;
  } else {
    t.way = Way::in_ring;
    feed(t);
  }
  e.way = t.way;
  e.in_ring = static_cast<uint32_t>(t.moved);
  shared::write_label(c, cover.label);
  cover.number.store(t.number, std::memory_order_release);
  return true;
}

// Moves as many bytes into the ring as there is room for.
void Comm::feed(Transfer& t) {
  const orr_coll& c = *t.coll;
  Ring& ring = segment_.ring(rank_, c.root_or_peer);
  uint64_t& tail = outbound_[c.root_or_peer].tail;
  const uint64_t head = ring.head.load(std::memory_order_relaxed);
  const uint64_t left = bytes_of(c.count, c.dtype) - t.moved;
  if (head + left - tail > ring_bytes) tail = ring.tail.load(std::memory_order_acquire);
  const uint64_t n = worth_moving(left, ring_bytes - (head - tail));
  if (n == 0) return;
  ring_write(ring, head, orr::data<char>(c.send) + t.moved, n);
  ring.head.store(head + n, std::memory_order_release);
  t.moved += n;
  t.done = n == left;
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
  Inbound& in = inbound_[from];
  const Cover& cover = segment_.ring(from, rank_).cover(in.taken + 1);
  if (cover.number.load(std::memory_order_acquire) != in.taken + 1) return false;
  const Envelope& e = cover.envelope;
  in.cover = &cover;
  in.bytes = bytes_of(e.count, e.dtype);
  in.open = true;
  in.got = 0;
  auto taker = std::find_if(all.begin(), all.end(), [&](const Transfer& t) {
    return !t.sends && !t.done && !t.begun && t.coll->root_or_peer == from && t.coll->tag == e.tag;
  });
  if (taker != all.end()) {
    if (!match(*taker, e)) refuse(*taker, e, cover.label);
    taker->begun = true;
    in.transfer = &*taker;
    in.to = taker->coll->recv.memory ? orr::data<char>(taker->coll->recv) : nullptr;
  } else {
    in.strays.push_back({e, cover.label, std::vector<char>(in.bytes)});
    in.transfer = nullptr;
    in.to = in.strays.back().bytes.data();
  }
  return true;
}

// Takes what has come of the open message; says whether anything had, or the message is complete.
bool Comm::receive(int from) {
  Inbound& in = inbound_[from];
  Ring& ring = segment_.ring(from, rank_);
  uint64_t n = in.bytes - in.got;
  if (in.cover->envelope.way == Way::in_ring)
    n = drain(ring, in);
  else if (in.cover->envelope.way == Way::in_place)
    fetch(in.to, in.cover->place, from, n);
  else if (n > 0)
    std::memcpy(in.to, in.cover->bytes, n);
  in.got += n;
  if (in.got < in.bytes) return n > 0;
  ring.taken.store(++in.taken, std::memory_order_release);
  if (in.transfer)
    in.transfer->done = true;
  else
    in.strays.back().complete = true;
  in.open = false;
  return true;
}

// How many bytes it took from the ring. What came with the envelope is there; of more, the sender's
// end of the ring tells.
uint64_t Comm::drain(Ring& ring, const Inbound& in) {
  const uint64_t tail = ring.tail.load(std::memory_order_relaxed);
  uint64_t here = in.cover->envelope.in_ring;
  if (here <= in.got) here = in.got + ring.head.load(std::memory_order_acquire) - tail;
  const uint64_t n = worth_moving(in.bytes - in.got, here - in.got);
  if (n == 0) return 0;
  ring_read(ring, tail, in.to + in.got, n, in.bytes);
  ring.tail.store(tail + n, std::memory_order_release);
  return n;
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
