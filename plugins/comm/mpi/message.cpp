// SPDX-License-Identifier: Apache-2.0
//
// Send and recv. A head goes ahead of each message and says what its sender believes to send, so
// that a receiver that wants something else can name both. MPI matches the nth head between two
// ranks under a tag with the nth receive of one, and likewise the data: the two belong together.
#include <orrery/sdk/plugin.hpp>

#include "../shared/operation.h"
#include "comm.h"

namespace mpi {

struct Comm::Transfer {
  const orr_coll& coll;
  int peer;  // -1: not known yet, whoever sends first
  struct {
    int64_t count;
    int32_t dtype;
    shared::Label label;
  } head{};
  Requests requests{};  // the head's, then the data's
  bool head_done = false, done = false;

  bool sends() const { return coll.op == ORR_COLL_SEND; }
  int64_t bytes() const { return coll.count * orr_dtype_bytes(coll.dtype); }
};

// REQUIRES: the world's lock.
void Comm::begin(Transfer& t) {
  const orr_coll& c = t.coll;
  if (t.sends()) t.head = {c.count, c.dtype, shared::label_of(c)};
  char* const data = t.bytes() > 0 ? orr::data<char>(t.sends() ? c.send : c.recv) : nullptr;
  move(t.sends(), reinterpret_cast<char*>(&t.head), sizeof t.head, t.peer, tag_of_head(c.tag),
       t.requests);
  move(t.sends(), data, t.bytes(), t.peer, tag_of_data(c.tag), t.requests);
}

// A head that no receive of a known source has taken says whom to receive from.
void Comm::find_source(Transfer& t) {
  std::lock_guard hold(world_->lock());
  int found = 0;
  MPI_Status status;
  check_mpi(MPI_Iprobe(MPI_ANY_SOURCE, tag_of_head(t.coll.tag), comm_, &found, &status),
            "MPI_Iprobe");
  if (!found) return;
  t.peer = status.MPI_SOURCE;
  begin(t);
}

void Comm::check_head(const Transfer& t) const {
  const orr_coll& c = t.coll;
  if (t.head.count == c.count && t.head.dtype == c.dtype) return;
  const std::string sent = shared::end_of_message(t.head.count, t.head.dtype, t.head.label);
  const std::string wanted = shared::end_of_message(c.count, c.dtype, shared::label_of(c));
  throw orr::Error(ORR_FAILED,
                   shared::unequal_ends(world_of_[t.peer], sent, world_of_[rank_], wanted));
}

// The data is not looked at before its head: of the wrong length it is an error of the library.
bool Comm::advance(Transfer& t) {
  if (t.done) return true;
  if (t.peer < 0) find_source(t);
  if (t.peer < 0) return false;
  if (!t.head_done) {
    if (!test(t.requests.data(), 1)) return false;
    t.head_done = true;
    if (!t.sends()) check_head(t);
  }
  return t.done = test(&t.requests[1], t.requests.size() - 1);
}

void Comm::transfer(const orr_coll* ops, int n) {
  std::vector<Transfer> all;
  int64_t bytes = 0;
  for (int i = 0; i < n; ++i) {
    if (!shared::paired(ops[i])) continue;
    all.push_back({ops[i], ops[i].root_or_peer});
    bytes += all.back().bytes();
  }
  if (all.empty()) return;
  std::unique_lock hold(world_->lock());
  for (Transfer& t : all)
    if (t.peer >= 0) begin(t);
  hold.unlock();
  await(bytes, [&] {
    const Transfer* waits = nullptr;
    for (Transfer& t : all)
      if (!advance(t) && !waits) waits = &t;
    if (waits) current_ = &waits->coll;
    return !waits;
  });
  for (const Transfer& t : all)
    if (!t.sends() && t.coll.size >= sizeof t.coll && t.coll.source) *t.coll.source = t.peer;
}

}  // namespace mpi
