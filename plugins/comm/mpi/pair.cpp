// SPDX-License-Identifier: Apache-2.0
//
// Messages between two ranks. A head goes first: through memory, where it is matched here, or as a
// message under the user's tag, where the library does. A body follows under its own serial number,
// so that it never meets another head's receive, whatever order the heads were taken in.
#include <algorithm>
#include <cstring>

#include <orrery/sdk/plugin.hpp>

#include "comm.h"
#include "wait.h"

namespace mpi {

// Returns where the next request goes. REQUIRES: inside; room for pieces_of(bytes).
MPI_Request* Comm::move_pieces(bool sends, const orr::exchange::Message& m, int tag,
                               MPI_Request* to) {
  for (int64_t at = 0; at < m.bytes; at += most_bytes) {
    const int bytes = static_cast<int>(std::min(most_bytes, m.bytes - at));
    if (sends)
      check_mpi(MPI_Isend(m.data + at, bytes, MPI_BYTE, m.peer, tag, main_, to++), "MPI_Isend");
    else
      check_mpi(MPI_Irecv(m.data + at, bytes, MPI_BYTE, m.peer, tag, main_, to++), "MPI_Irecv");
  }
  return to;
}

void Comm::exchange(const std::vector<orr::exchange::Message>& sends,
                    const std::vector<orr::exchange::Message>& recvs) {
  int pieces = 0;
  int64_t bytes = 0;
  for (const orr::exchange::Message& m : recvs) pieces += pieces_of(m.bytes);
  for (const orr::exchange::Message& m : sends) pieces += pieces_of(m.bytes), bytes += m.bytes;
  requests_.assign(pieces, MPI_REQUEST_NULL);
  {
    std::lock_guard lock(family_->inside());
    MPI_Request* to = requests_.data();
    for (const orr::exchange::Message& m : recvs) to = move_pieces(false, m, tag_of_exchange, to);
    for (const orr::exchange::Message& m : sends) to = move_pieces(true, m, tag_of_exchange, to);
  }
  end_agreement(requests_);
  finish(requests_, bytes);
}

// Returns the bytes of the head that count.
int64_t Comm::write_head(const Transfer& t, Head& h) {
  int& serial = serial_[t.peer()];
  serial = serial % last_serial + 1;
  h.count = t.coll->count;
  h.dtype = t.coll->dtype;
  h.tag = t.coll->tag;
  h.serial = serial;
  shared::write_label(*t.coll, h.label);
  const int64_t inlined = t.pieces == 0 ? t.bytes : 0;
  if (inlined > 0) std::memcpy(h.data, t.data(), inlined);
  return static_cast<int64_t>(offsetof(Head, data)) + inlined;
}

void Comm::begin_send(Transfer& t) {
  if (!heads_) {
    t.head = std::make_unique<Head>();
    const int64_t bytes = write_head(t, *t.head);
    check_mpi(MPI_Isend(t.head.get(), static_cast<int>(bytes), MPI_BYTE, t.peer(), t.coll->tag,
                        beside_, &t.head_request),
              "MPI_Isend");
  } else {
    Head* const place = heads_.place(t.peer());
    if (!place) return;
    write_head(t, *place);
    heads_.send(t.peer());
    t.head_done = true;
  }
  t.begun = true;
  if (t.pieces > 0)
    move_pieces(true, {t.peer(), t.data(), t.bytes}, serial_[t.peer()], &requests_[t.first]);
}

void Comm::begin_recv(Transfer& t) {
  t.begun = true;
  if (!heads_) {
    t.head = std::make_unique<Head>();
    check_mpi(
        MPI_Irecv(t.head.get(), sizeof(Head), MPI_BYTE, t.peer() < 0 ? MPI_ANY_SOURCE : t.peer(),
                  t.coll->tag, beside_, &t.head_request),
        "MPI_Irecv");
    return;
  }
  const auto early = std::find_if(early_.begin(), early_.end(),
                                  [&](const Early& e) { return t.wants(e.source, e.head); });
  if (early == early_.end()) return;
  open_head(t, early->source, early->head);
  early_.erase(early);
}

// The head of a message has come: is it the one that is wanted? Then its body is.
void Comm::open_head(Transfer& t, int source, const Head& head) {
  const orr_coll& c = *t.coll;
  t.head_done = true;
  if (head.count != c.count || head.dtype != c.dtype)
    throw orr::Error(
        ORR_FAILED,
        shared::unequal_ends(
            world_of_[source], shared::end_of_message(head.count, head.dtype, head.label),
            world_of_[rank_], shared::end_of_message(c.count, c.dtype, shared::label_of(c))));
  if (c.size >= offsetof(orr_coll, source) + sizeof c.source && c.source) *c.source = source;
  if (t.pieces > 0)
    move_pieces(false, {source, t.data(), t.bytes}, head.serial, &requests_[t.first]);
  else if (t.bytes > 0)
    std::memcpy(t.data(), head.data, t.bytes);
}

// Heads from a rank that one of these receives waits for. Each goes to the first that wants it,
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

// Through memory: what a peer had no room for before, and what has come since. Messages to one peer
// leave in order.
void Comm::move_heads() {
  for (auto t = transfers_.begin(); t != transfers_.end(); ++t) {
    if (t->begun) continue;
    const int peer = t->peer();
    const bool blocked = std::any_of(transfers_.begin(), t, [&](const Transfer& before) {
      return !before.begun && before.peer() == peer;
    });
    if (!blocked) begin_send(*t);
  }
  for (const Transfer& t : transfers_) {
    if (t.sends()) continue;
    const bool any = t.peer() < 0;
    const int first = any ? 0 : t.peer(), end = any ? size_ : first + 1;
    for (int r = first; r < end && !t.head_done; ++r) deliver(r);
  }
}

// A head that the library carries.
void Comm::test_head(Transfer& t) {
  int done = 0;
  MPI_Status status;
  check_mpi(MPI_Test(&t.head_request, &done, &status), "MPI_Test");
  if (!done) return;
  t.head_done = true;
  if (!t.sends()) open_head(t, status.MPI_SOURCE, *t.head);
}

// The first that is not done yet, or null. The library moves all bodies when it is called for one,
// and must be called when none is there: on CPUs that ranks share, each call may give them away.
Transfer* Comm::advance_all() {
  if (heads_) {
    move_heads();
  } else {
    for (Transfer& t : transfers_)
      if (!t.head_done) test_head(t);
  }
  for (Transfer& t : transfers_) {
    if (t.done) continue;
    t.done = t.head_done && (t.pieces == 0 || test(&requests_[t.first], t.pieces));
    if (t.done) continue;
    if (heads_ && !t.head_done) family_->listen();
    return &t;
  }
  return nullptr;
}

void Comm::transfer(const orr_coll* ops, int n) {
  transfers_.clear();
  int64_t bytes = 0;
  int pieces = 0;
  for (int i = 0; i < n; ++i) {
    if (!shared::paired(ops[i])) continue;
    const int64_t own = ops[i].count * orr_dtype_bytes(ops[i].dtype);
    const int cut = own <= Head::inline_bytes ? 0 : pieces_of(own);
    transfers_.push_back({&ops[i], own, pieces, cut});
    bytes += own, pieces += cut;
  }
  if (transfers_.empty()) return;
  requests_.assign(pieces, MPI_REQUEST_NULL);
  {
    std::lock_guard lock(family_->inside());
    for (Transfer& t : transfers_)
      if (!t.sends()) begin_recv(t);
    for (Transfer& t : transfers_)
      if (t.sends() && !heads_) begin_send(t);
  }
  await(bytes, [&] {
    const Transfer* waits = advance_all();
    if (waits) current_ = waits->coll;
    return waits == nullptr;
  });
}

}  // namespace mpi
