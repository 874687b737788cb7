// SPDX-License-Identifier: Apache-2.0
//
// Send and recv: one ring per ordered pair of ranks. Messages of a pair keep their order; one whose
// tag is not wanted yet is set aside, so that it blocks no other. A message travels in parts, or
// stays in place.
#include "pair.h"

#include <algorithm>
#include <orrery/sdk/plugin.hpp>

#include "comm.h"
#include "slots.h"

namespace local {
namespace {

// From here on registered memory is read in place.
constexpr uint64_t direct_bytes = 4 << 10;

uint64_t bytes_of(int64_t count, int32_t dtype) {
  return static_cast<uint64_t>(count * orr_dtype_bytes(dtype));
}

bool match(const Transfer& t, const MessageHeader& e) {
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
      claim(&segment_.ring(rank_, peer).part_header(outbound_[peer].sent + 1));
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
      return e.sends && e.coll->root_or_peer == peer && !e.done && !(e.begun && e.in_place);
    });
    if (!blocked) moved |= push(t);
  }
  return moved;
}

// Where the receiver is to fetch the message; none: it travels in parts.
Place Comm::place_of_message(const orr_coll& c) const {
  const uint64_t bytes = bytes_of(c.count, c.dtype);
  if (bytes < direct_bytes) return {};
  const Place place = source_of(c.send, orr::data<char>(c.send));
  return place.registered() || static_cast<int64_t>(bytes) >= worth_attaching ? place : Place{};
}

// Says whether anything has left, or a message in place has been received.
bool Comm::push(Transfer& t) {
  if (t.begun && t.in_place) {
    Ring& ring = segment_.ring(rank_, t.coll->root_or_peer);
    t.done = ring.taken.load(std::memory_order_acquire) >= t.number;
    return t.done;
  }
  bool moved = false;
  while (!t.done && !(t.begun && t.in_place) && send_part(t)) moved = true;
  return moved;
}

// Says whether there was room. The peer's end of the ring is looked at only where there may be none
// without: reading it takes a cache line from the other CPU.
bool Comm::send_part(Transfer& t) {
  const orr_coll& c = *t.coll;
  Ring& ring = segment_.ring(rank_, c.root_or_peer);
  Outbound& out = outbound_[c.root_or_peer];
  if (out.sent - out.taken == ring_parts) out.taken = ring.taken.load(std::memory_order_acquire);
  if (out.sent - out.taken == ring_parts) return false;
  t.number = ++out.sent;
  PartHeader& part_header = ring.part_header(t.number);
  MessageHeader& e = part_header.message;
  if (!t.begun) {
    const Place place = place_of_message(c);
    t.begun = true;
    t.in_place = place.region != 0;
    e.count = c.count, e.tag = c.tag, e.dtype = c.dtype;
    if (t.in_place) part_header.place = place;
    shared::write_label(c, part_header.label);
  }
  e.in_place = t.in_place;
  if (!t.in_place) {
    const uint64_t all = bytes_of(c.count, c.dtype), n = std::min(all - t.moved, part_bytes);
    if (n > 0) put(ring.part(t.number, n), orr::data<char>(c.send) + t.moved, n);
    e.bytes = static_cast<uint32_t>(n);
    t.moved += n;
    t.done = t.moved == all;
  }
  part_header.number.store(t.number, std::memory_order_release);
  return true;
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
                            [&](const Stray& s) { return s.message.tag == t.coll->tag; });
  if (found == strays.end() || !found->complete) return false;
  if (!match(t, found->message)) refuse(t, found->message, found->label);
  if (!found->bytes.empty())
    std::memcpy(orr::data<char>(t.coll->recv), found->bytes.data(), found->bytes.size());
  t.done = true;
  strays.erase(found);
  return true;
}

bool Comm::begin_message(int from, std::vector<Transfer>& all) {
  Inbound& in = inbound_[from];
  const PartHeader* const part_header = next_part(from);
  if (!part_header) return false;
  const MessageHeader& e = part_header->message;
  in.bytes = bytes_of(e.count, e.dtype);
  in.open = true;
  in.got = 0;
  auto taker = std::find_if(all.begin(), all.end(), [&](const Transfer& t) {
    return !t.sends && !t.done && !t.begun && t.coll->root_or_peer == from && t.coll->tag == e.tag;
  });
  if (taker != all.end()) {
    if (!match(*taker, e)) refuse(*taker, e, part_header->label);
    taker->begun = true;
    in.transfer = &*taker;
    in.to = taker->coll->recv.memory ? orr::data<char>(taker->coll->recv) : nullptr;
  } else {
    in.strays.push_back({e, part_header->label, std::vector<char>(in.bytes)});
    in.transfer = nullptr;
    in.to = in.strays.back().bytes.data();
  }
  return true;
}

// The header of the next part from that rank, once it is there.
const PartHeader* Comm::next_part(int from) const {
  const uint64_t number = inbound_[from].taken + 1;
  const PartHeader& part_header = segment_.ring(from, rank_).part_header(number);
  return part_header.number.load(std::memory_order_acquire) == number ? &part_header : nullptr;
}

// Takes what has come of the open message; says whether anything had.
bool Comm::receive(int from) {
  Inbound& in = inbound_[from];
  Ring& ring = segment_.ring(from, rank_);
  bool moved = false;
  while (in.open) {
    const PartHeader* const part_header = next_part(from);
    if (!part_header) return moved;
    const uint64_t n = part_header->message.in_place ? in.bytes : part_header->message.bytes;
    if (part_header->message.in_place)
      fetch(in.to, part_header->place, from, n);
    else if (n > 0)
      take(in.to + in.got, ring.part(in.taken + 1, n), n, in.bytes);
    ring.taken.store(++in.taken, std::memory_order_release);
    in.got += n;
    in.open = in.got < in.bytes;
    moved = true;
  }
  (in.transfer ? in.transfer->done : in.strays.back().complete) = true;
  return true;
}

void Comm::refuse(const Transfer& t, const MessageHeader& e, const shared::Label& label) {
  const orr_coll& c = *t.coll;
  family_->die(ORR_FAILED, shared::unequal_ends(
                               world_of_[c.root_or_peer],
                               shared::end_of_message(e.count, e.dtype, label), world_of_[rank_],
                               shared::end_of_message(c.count, c.dtype, shared::label_of(c))));
}

}  // namespace local
