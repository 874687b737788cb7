// SPDX-License-Identifier: Apache-2.0
#include "messages.h"

#include <algorithm>
#include <cstring>
#include <orrery/sdk/plugin.hpp>

#include "group.h"

namespace local {
namespace {

constexpr int most_parts = 32;  // of what is written at once

}  // namespace

Request& Group::add(const orr_coll& c, int peer, bool sends, Kind kind, int64_t count, void* data) {
  Request& p = requests_.emplace_back(c, peer, sends, static_cast<char*>(data));
  p.head = {count, kind, kind == whole ? c.tag : 0, kind == card ? int32_t{ORR_U8} : c.dtype, {}};
  if (!sends) return p;
  if (kind == whole) p.label = shared::label_of(c);
  p.head.place = place_of_message(p.data, p.head.bytes());
  if (p.head.place.exists()) p.number = ++placed_[peer];
  return p;
}

// A group's sends and receives.
void Group::transfer(const orr_coll* ops, int n) {
  for (int i = 0; i < n; ++i) {
    if (!shared::paired(ops[i])) continue;
    const bool sends = ops[i].op == ORR_COLL_SEND;
    add(ops[i], ops[i].root_or_peer, sends, whole, ops[i].count,
        address_of(sends ? ops[i].send : ops[i].recv));
  }
  if (!requests_.empty()) exchange_all();
}

void Group::exchange(const std::vector<orr::exchange::Message>& sends,
                     const std::vector<orr::exchange::Message>& recvs) {
  const int64_t unit = std::max<int64_t>(orr_dtype_bytes(current_->dtype), 1);
  for (const auto& m : sends) add(*current_, m.peer, true, piece, m.bytes / unit, m.data);
  for (const auto& m : recvs) add(*current_, m.peer, false, piece, m.bytes / unit, m.data);
  exchange_all();
}

// Every move ends a wait, so that the next one begins awake: a peer at work is heard at once. One
// that sleeps is woken before this rank waits any longer, or leaves.
void Group::exchange_all() {
  const auto missing = [this](int from) { return awaited_peer(from); };
  const auto missing_aloud = [this](int from) {
    const int peer = awaited_peer(from);
    if (peer < 0) ring_bells();
    return peer;
  };
  const auto open = [](const Request& p) { return !p.done; };
  while (std::any_of(requests_.begin(), requests_.end(), open)) {
    if (spin(missing, false)) continue;
    ring_bells();
    await_slowly(missing_aloud);
  }
  ring_bells();
  requests_.clear();
}

// None when something could be moved.
int Group::awaited_peer(int from) {
  if (progress()) {
    show_pulse();
    agree();
    return -1;
  }
  int peer = -1;
  for (const Request& p : requests_) {
    if (p.done || p.peer < from || (peer >= 0 && p.peer >= peer)) continue;
    peer = p.peer;
    current_ = p.coll;
  }
  return peer;
}

// Moves what can be moved now; says whether anything did.
bool Group::progress() {
  bool moved = false;
  for (auto p = requests_.begin(); p != requests_.end(); ++p) {
    if (p->done) continue;
    const bool first = std::none_of(requests_.begin(), p, [&](const Request& e) {
      return !e.done && e.peer == p->peer && e.sends == p->sends;
    });
    if (first) moved |= p->sends ? push(p->peer) : pull(p->peer);
  }
  return moved;
}

// Messages to one peer leave in order, as many at once as there is room for.
bool Group::push(int peer) {
  bool moved = false;
  iovec parts[most_parts];
  int n = 0;
  for (Request& p : requests_) {
    if (p.done || !p.sends || p.peer != peer) continue;
    if (p.left() == 0) p.done = fetched(peer) >= p.number;
    moved |= p.done;
    if (n + 3 > most_parts) break;
    uint64_t before = p.moved;  // bytes to leave out
    for (const iovec& field : {iovec{&p.head, sizeof p.head}, iovec{p.data, p.head.bytes_behind()},
                               iovec{&p.label, p.head.label_bytes()}}) {
      const uint64_t gone = std::min(before, field.iov_len);
      before -= gone;
      if (gone < field.iov_len)
        parts[n++] = {static_cast<char*>(field.iov_base) + gone, field.iov_len - gone};
    }
  }
  uint64_t gone = n > 0 ? write(peer, parts, n) : 0;
  for (Request& p : requests_) {
    if (gone == 0) break;
    if (p.done || !p.sends || p.peer != peer) continue;
    const uint64_t step = std::min(gone, p.left());
    p.moved += step;
    gone -= step;
    p.done = !p.head.place.exists() && p.left() == 0;
    moved = true;
  }
  return moved;
}

bool Group::pull(int peer) {
  for (bool moved = false;;) {
    bool wanted = false;
    moved |= take_strays(peer, wanted);
    if (!inbound_[peer].open && !(wanted && open_message(peer))) return moved;
    if (!receive(peer)) return moved;
    moved = true;
  }
}

// Takes messages that came early and are wanted now; says of the rest whether any is wanted. Parts
// of collectives that differ stay where they are until it is known that these do.
bool Group::take_strays(int peer, bool& wanted) {
  bool taken = false;
  auto& strays = inbound_[peer].strays;
  for (Request& p : requests_) {
    if (p.sends || p.begun || p.peer != peer) continue;
    const auto found = std::find_if(strays.begin(), strays.end(),
                                    [&](const Stray& s) { return s.head.same(p.head); });
    const bool complete = found != strays.end() && found->complete;
    if (complete && !found->head.equal(p.head) && agree()) refuse(p, *found);
    if (!complete || !found->head.equal(p.head)) {
      wanted = true;
      continue;
    }
    if (!found->bytes.empty()) std::memcpy(p.data, found->bytes.data(), found->bytes.size());
    p.begun = p.done = taken = true;
    strays.erase(found);
  }
  return taken;
}

bool Group::open_message(int peer) {
  Inbound& in = inbound_[peer];
  in.got += read(peer, reinterpret_cast<char*>(&in.head) + in.got, sizeof(Head) - in.got);
  if (in.got < sizeof(Head)) return false;
  in.open = true;
  in.got = 0;
  const auto match = std::find_if(requests_.begin(), requests_.end(), [&](const Request& p) {
    return !p.sends && !p.begun && p.peer == peer && p.head.same(in.head);
  });
  if (match != requests_.end() && match->head.equal(in.head)) {
    match->begun = true;
    in.request = &*match;
    in.to = match->data;
  } else {
    in.strays.push_back({in.head, {}, std::vector<char>(in.head.bytes())});
    in.request = nullptr;
    in.to = in.strays.back().bytes.data();
  }
  return true;
}

// Takes what has come of the open message; says whether anything had. Nobody reads the label of a
// message that is as it was wanted.
bool Group::receive(int peer) {
  Inbound& in = inbound_[peer];
  const uint64_t body = in.head.bytes_behind(), all = body + in.head.label_bytes();
  for (bool moved = false; in.got < all; moved = true) {
    char* to = in.to + in.got;
    if (in.got >= body && in.request) to = nullptr;
    if (in.got >= body && !in.request)
      to = reinterpret_cast<char*>(&in.strays.back().label) + (in.got - body);
    const uint64_t n = read(peer, to, (in.got < body ? body : all) - in.got);
    if (n == 0) return moved;
    in.got += n;
  }
  if (in.head.place.exists()) fetch_message(peer, in.head.place, in.to, in.head.bytes());
  (in.request ? in.request->done : in.strays.back().complete) = true;
  in.open = false;
  in.got = 0;
  return true;
}

void Group::refuse(const Request& mine, const Stray& theirs) {
  const auto end = [](const Head& head, const shared::Label& label) {
    return shared::end_of_message(head.count, head.dtype, label);
  };
  family_->die(ORR_FAILED, shared::unequal_ends(world_of_[mine.peer],
                                                end(theirs.head, theirs.label), world_of_[rank_],
                                                end(mine.head, shared::label_of(*mine.coll))));
}

}  // namespace local
