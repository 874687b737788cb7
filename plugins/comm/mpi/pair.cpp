// SPDX-License-Identifier: Apache-2.0
//
// Messages between two ranks. A head goes first, under the user's tag: what follows, how it is
// called, and the message itself if it is short. A longer one follows under its own serial number,
// so that a body never meets another head's receive, whatever order the heads were taken in.
#include <algorithm>
#include <cstring>

#include <orrery/sdk/plugin.hpp>

#include "comm.h"
#include "wait.h"

namespace mpi {
namespace {

constexpr int64_t inline_bytes = 2 << 10;

struct Head {
  int64_t count;
  int32_t dtype, serial;
  shared::Label label;
  char data[inline_bytes];
};

}  // namespace

struct Comm::Transfer {
  const orr_coll* coll;
  int64_t bytes;
  Head head{};
  MPI_Request head_request = MPI_REQUEST_NULL;
  bool head_done = false;
  std::vector<MPI_Request> body = {};
  bool done = false;

  bool sends() const { return coll->op == ORR_COLL_SEND; }
  bool is_short() const { return bytes <= inline_bytes; }
  char* data() const {
    return bytes > 0 ? orr::data<char>(sends() ? coll->send : coll->recv) : nullptr;
  }
};

void Comm::exchange(const std::vector<orr::exchange::Message>& sends,
                    const std::vector<orr::exchange::Message>& recvs) {
  requests_.clear();
  int64_t bytes = 0;
  {
    std::lock_guard lock(family_->inside());
    for (const orr::exchange::Message& m : recvs)
      for (int64_t at = 0; at < m.bytes; at += most_bytes)
        check_mpi(MPI_Irecv(m.data + at, static_cast<int>(std::min(most_bytes, m.bytes - at)),
                            MPI_BYTE, m.peer, tag_of_exchange, main_, &requests_.emplace_back()),
                  "MPI_Irecv");
    for (const orr::exchange::Message& m : sends) {
      bytes += m.bytes;
      for (int64_t at = 0; at < m.bytes; at += most_bytes)
        check_mpi(MPI_Isend(m.data + at, static_cast<int>(std::min(most_bytes, m.bytes - at)),
                            MPI_BYTE, m.peer, tag_of_exchange, main_, &requests_.emplace_back()),
                  "MPI_Isend");
    }
  }
  end_agreement(requests_);
  finish(requests_, bytes);
}

void Comm::begin_send(Transfer& t) {
  const int peer = t.coll->root_or_peer;
  serial_[peer] = serial_[peer] % last_serial + 1;
  t.head.count = t.coll->count;
  t.head.dtype = t.coll->dtype;
  t.head.serial = serial_[peer];
  t.head.label = shared::label_of(*t.coll);
  int64_t head_bytes = offsetof(Head, data);
  if (t.is_short()) {
    if (t.bytes > 0) std::memcpy(t.head.data, t.data(), t.bytes);
    head_bytes += t.bytes;
  }
  check_mpi(MPI_Isend(&t.head, static_cast<int>(head_bytes), MPI_BYTE, peer, t.coll->tag, heads_,
                      &t.head_request),
            "MPI_Isend");
  for (int64_t at = 0; !t.is_short() && at < t.bytes; at += most_bytes)
    check_mpi(MPI_Isend(t.data() + at, static_cast<int>(std::min(most_bytes, t.bytes - at)),
                        MPI_BYTE, peer, t.head.serial, main_, &t.body.emplace_back()),
              "MPI_Isend");
}

void Comm::begin_recv(Transfer& t) {
  const int peer = t.coll->root_or_peer < 0 ? MPI_ANY_SOURCE : t.coll->root_or_peer;
  check_mpi(MPI_Irecv(&t.head, sizeof t.head, MPI_BYTE, peer, t.coll->tag, heads_, &t.head_request),
            "MPI_Irecv");
}

// The head of a message has come: is it the one that is wanted? Then its body is.
void Comm::open_head(Transfer& t, int source) {
  const orr_coll& c = *t.coll;
  if (t.head.count != c.count || t.head.dtype != c.dtype)
    throw orr::Error(
        ORR_FAILED,
        shared::unequal_ends(
            world_of_[source], shared::end_of_message(t.head.count, t.head.dtype, t.head.label),
            world_of_[rank_], shared::end_of_message(c.count, c.dtype, shared::label_of(c))));
  if (c.size >= offsetof(orr_coll, source) + sizeof c.source && c.source) *c.source = source;
  if (t.is_short()) {
    if (t.bytes > 0) std::memcpy(t.data(), t.head.data, t.bytes);
    return;
  }
  for (int64_t at = 0; at < t.bytes; at += most_bytes)
    check_mpi(MPI_Irecv(t.data() + at, static_cast<int>(std::min(most_bytes, t.bytes - at)),
                        MPI_BYTE, source, t.head.serial, main_, &t.body.emplace_back()),
              "MPI_Irecv");
}

bool Comm::advance(Transfer& t) {
  if (t.done) return true;
  int done = 0;
  if (!t.head_done) {
    MPI_Status status;
    check_mpi(MPI_Test(&t.head_request, &done, &status), "MPI_Test");
    if (!done) return false;
    t.head_done = true;
    if (!t.sends()) open_head(t, status.MPI_SOURCE);
  }
  check_mpi(MPI_Testall(static_cast<int>(t.body.size()), t.body.data(), &done, MPI_STATUSES_IGNORE),
            "MPI_Testall");
  return t.done = done != 0;
}

void Comm::transfer(const orr_coll* ops, int n) {
  std::vector<Transfer> all;
  int64_t bytes = 0;
  for (int i = 0; i < n; ++i) {
    if (!shared::paired(ops[i])) continue;
    all.push_back({&ops[i], ops[i].count * orr_dtype_bytes(ops[i].dtype)});
    bytes += all.back().bytes;
  }
  if (all.empty()) return;
  {
    std::lock_guard lock(family_->inside());
    for (Transfer& t : all) t.sends() ? begin_send(t) : begin_recv(t);
  }
  await(bytes, [&] {
    const Transfer* waits = nullptr;
    for (Transfer& t : all)
      if (!advance(t) && !waits) waits = &t;
    if (waits) current_ = waits->coll;
    return waits == nullptr;
  });
}

}  // namespace mpi
