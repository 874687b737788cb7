// SPDX-License-Identifier: Apache-2.0
//
// What a message brings beyond its head: one end copies it from or to where the other has it, as
// the libraries do on one host, or they move it, under a tag of its own, so that it never meets
// another head's receive, whatever order the heads were taken in.
#include <algorithm>

#include <orrery/sdk/plugin.hpp>

#include "../shared/attach.h"
#include "comm.h"

namespace mpi {
namespace {

// Who writes the head numbers the message: the sender's numbers have one half of the tags, the
// receiver's the other.
int tag_of(const Transfer& t) {
  constexpr int half = last_tag_of_bodies / 2;
  if (t.number == 0) return tag_of_exchange;
  return static_cast<int>(t.number % half) + (t.sends == t.lends ? 1 : 1 + half);
}

}  // namespace

// By the library.
void Comm::move_body(const Transfer& t) {
  const int tag = tag_of(t);
  MPI_Request* to = &requests_[t.first];
  std::lock_guard lock(family_->inside());
  for (int64_t at = 0; at < t.message.bytes; at += most_bytes) {
    char* const data = t.message.data + at;
    const int bytes = static_cast<int>(std::min(most_bytes, t.message.bytes - at));
    if (t.sends)
      check_mpi(MPI_Isend(data, bytes, MPI_BYTE, t.peer(), tag, main_, to++), "MPI_Isend");
    else
      check_mpi(MPI_Irecv(data, bytes, MPI_BYTE, t.peer(), tag, main_, to++), "MPI_Irecv");
  }
}

// Some of what a peer lends, or to it, for others wait, too; says whether that was the last. What
// cannot be reached the library shall move: that of a rank that has ended or failed, which is
// noticed there.
bool Comm::copy(Transfer& t) {
  constexpr int64_t at_once = 16 << 20;
  const int64_t bytes = std::min(at_once, t.message.bytes - t.copied);
  if (heads_.is_closed(t.peer()) ||
      !shared::copy_own(t.sends ? process_vm_writev : process_vm_readv, processes_[t.peer()],
                        t.lent + static_cast<uint64_t>(t.copied), t.message.data + t.copied,
                        static_cast<uint64_t>(bytes))) {
    heads_.give_back(t.peer(), t.number, false);
    t.lent = 0;
    move_body(t);
    return false;
  }
  t.copied += bytes;
  if (t.copied < t.message.bytes) return false;
  heads_.give_back(t.peer(), t.number, true);
  return true;
}

bool Comm::body_done(Transfer& t) {
  if (t.pieces == 0) return true;
  if (t.by_library()) return test(&requests_[t.first], t.pieces);
  if (!t.lends) return copy(t);
  const Back back = heads_.back(t.peer(), t.number);
  if (back == Back::unused) {
    t.lent = 0;
    move_body(t);
  }
  return back == Back::used;
}

}  // namespace mpi
