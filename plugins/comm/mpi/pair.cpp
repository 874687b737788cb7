// SPDX-License-Identifier: Apache-2.0
//
// Messages between two ranks. A head goes first: through memory, where it is matched here, or as a
// message under the user's tag, where the library does. Messages of a collective, whose ranks know
// what comes, have heads only where these are no messages themselves.
#include <algorithm>
#include <cstring>

#include <orrery/sdk/plugin.hpp>

#include "comm.h"
#include "wait.h"

namespace mpi {
namespace {

// Of a collective's messages, whose data or whose room is lent; users' tags are from 0.
constexpr int32_t tag_of_data = -1, tag_of_room = -2;

}  // namespace

void Comm::exchange(const std::vector<orr::exchange::Message>& sends,
                    const std::vector<orr::exchange::Message>& recvs) {
  transfers_.clear();
  for (const orr::exchange::Message& m : sends) add(*current_, true, tag_of_data, m);
  for (const orr::exchange::Message& m : recvs) add(*current_, false, tag_of_data, m);
  begin_all();
  end_agreement(requests_);
  finish_all();
}

void Comm::transfer(const orr_coll* ops, int n) {
  transfers_.clear();
  for (int i = 0; i < n; ++i) {
    const orr_coll& c = ops[i];
    if (!shared::paired(c)) continue;
    const bool sends = c.op == ORR_COLL_SEND;
    const int64_t bytes = c.count * orr_dtype_bytes(c.dtype);
    const orr_buffer& buffer = sends ? c.send : c.recv;
    add(c, sends, c.tag, {c.root_or_peer, bytes > 0 ? orr::data<char>(buffer) : nullptr, bytes});
  }
  if (transfers_.empty()) return;
  begin_all();
  finish_all();
}

void Comm::add(const orr_coll& c, bool sends, int32_t tag, const orr::exchange::Message& m) {
  const int first = transfers_.empty() ? 0 : transfers_.back().first + transfers_.back().pieces;
  const bool has_head = heads_ || tag >= 0;
  const int cut = has_head && m.bytes <= Head::inline_bytes ? 0 : pieces_of(m.bytes);
  const bool delivers = m.fresh && cut > 0 && !processes_.empty();
  if (delivers) tag = tag_of_room;
  transfers_.push_back({&c, sends, sends != delivers, tag, m, first, cut});
  transfers_.back().head_done = !has_head;
}

// Returns the bytes of the head that count.
int64_t Comm::write_head(const Transfer& t, Head& h) {
  h.count = t.count();
  h.number = t.number;
  h.lent = t.lent;
  h.dtype = t.coll->dtype;
  h.tag = t.tag;
  shared::write_label(*t.coll, h.label);
  const int64_t inlined = t.pieces == 0 ? t.message.bytes : 0;
  if (inlined > 0) std::memcpy(h.data, t.message.data, inlined);
  return static_cast<int64_t>(offsetof(Head, data)) + inlined;
}

void Comm::send_head(Transfer& t) {
  if (!heads_ && !t.head_done) {
    t.number = ++sent_[t.peer()];
    t.head = std::make_unique<Head>();
    const int64_t bytes = write_head(t, *t.head);
    std::lock_guard lock(family_->inside());
    check_mpi(MPI_Isend(t.head.get(), static_cast<int>(bytes), MPI_BYTE, t.peer(), t.tag, beside_,
                        &t.head_request),
              "MPI_Isend");
  } else if (heads_) {
    Head* const place = heads_.place(t.peer());
    if (!place) return;
    t.number = heads_.next(t.peer());
    if (t.pieces > 0 && !processes_.empty() && heads_.may_lend(t.peer()))
      t.lent = reinterpret_cast<uint64_t>(t.message.data);
    write_head(t, *place);
    heads_.send(t.peer(), t.lent != 0);
    t.head_done = true;
  }
  t.begun = true;
  if (t.by_library()) move_body(t);
}

void Comm::await_head(Transfer& t) {
  t.begun = true;
  if (t.head_done) return move_body(t);
  if (heads_) return;
  t.head = std::make_unique<Head>();
  std::lock_guard lock(family_->inside());
  check_mpi(MPI_Irecv(t.head.get(), sizeof(Head), MPI_BYTE,
                      t.peer() < 0 ? MPI_ANY_SOURCE : t.peer(), t.tag, beside_, &t.head_request),
            "MPI_Irecv");
}

// The head of a message has come: is it the one that is wanted? Then its body is.
void Comm::open_head(Transfer& t, int source, const Head& head) {
  const orr_coll& c = *t.coll;
  t.head_done = true;
  if (head.count != t.count() || head.dtype != c.dtype)
    throw orr::Error(
        ORR_FAILED,
        shared::unequal_ends(
            world_of_[source], shared::end_of_message(head.count, head.dtype, head.label),
            world_of_[rank_], shared::end_of_message(t.count(), c.dtype, shared::label_of(c))));
  if (shared::paired(c) && c.size >= offsetof(orr_coll, source) + sizeof c.source && c.source)
    *c.source = source;
  t.message.peer = source;
  t.number = head.number;
  t.lent = head.lent;
  if (t.by_library())
    move_body(t);
  else if (t.pieces == 0 && t.message.bytes > 0)
    std::memcpy(t.message.data, head.data, t.message.bytes);
}

// One that came before.
void Comm::take_early(Transfer& t) {
  const auto early = std::find_if(early_.begin(), early_.end(),
                                  [&](const Early& e) { return t.wants(e.source, e.head); });
  if (early == early_.end()) return;
  open_head(t, early->source, early->head);
  early_.erase(early);
}

// Heads from a rank that one of these ends waits for. Each goes to the first that wants it,
// whichever waited; one that nobody wants yet is kept.
void Comm::deliver(int source) {
  while (const Head* head = heads_.find(source)) {
    const auto taker = std::find_if(transfers_.begin(), transfers_.end(),
                                    [&](const Transfer& t) { return t.wants(source, *head); });
    if (taker != transfers_.end())
      open_head(*taker, source, *head);
    else
      early_.push_back({source, *head});
    heads_.take(source);
  }
}

// At first all; later, through memory, those that a peer had no room for. To one peer they leave in
// order.
void Comm::send_heads() {
  for (auto t = transfers_.begin(); t != transfers_.end(); ++t) {
    if (t->begun) continue;
    const int peer = t->peer();
    const bool blocked = std::any_of(transfers_.begin(), t, [&](const Transfer& before) {
      return !before.begun && before.peer() == peer;
    });
    if (!blocked) send_head(*t);
  }
}

// Through memory, what has come since.
void Comm::take_heads() {
  for (Transfer& t : transfers_) {
    if (t.lends || t.head_done) continue;
    take_early(t);
    const bool any = t.peer() < 0;
    const int first = any ? 0 : t.peer(), end = any ? size_ : first + 1;
    for (int r = first; r < end && !t.head_done; ++r) deliver(r);
  }
}

// A head that the library carries.
void Comm::test_head(Transfer& t) {
  int done = 0;
  MPI_Status status;
  {
    std::lock_guard lock(family_->inside());
    check_mpi(MPI_Test(&t.head_request, &done, &status), "MPI_Test");
  }
  if (!done) return;
  t.head_done = true;
  if (!t.lends) open_head(t, status.MPI_SOURCE, *t.head);
}

// The first that is not done yet, or null. The library moves all bodies when it is called for one:
// on CPUs that ranks share, each call may give them away.
Transfer* Comm::advance_all() {
  if (heads_) {
    send_heads();
    take_heads();
  } else {
    for (Transfer& t : transfers_)
      if (!t.head_done) test_head(t);
  }
  Transfer* waits = nullptr;
  bool asked = false;
  for (Transfer& t : transfers_) {
    if (t.done || (asked && t.by_library())) continue;
    t.done = t.head_done && body_done(t);
    if (t.done) continue;
    asked |= t.head_done && t.by_library();
    if (!waits) waits = &t;
  }
  return waits;
}

void Comm::begin_all() {
  requests_.assign(transfers_.empty() ? 0 : transfers_.back().first + transfers_.back().pieces,
                   MPI_REQUEST_NULL);
  for (Transfer& t : transfers_)
    if (!t.lends) await_head(t);
  send_heads();
}

void Comm::finish_all() {
  int64_t bytes = 0;
  for (const Transfer& t : transfers_) bytes += t.message.bytes;
  await(bytes, [&] {
    const Transfer* waits = advance_all();
    if (waits) current_ = waits->coll;
    return waits == nullptr;
  });
}

}  // namespace mpi
