// SPDX-License-Identifier: Apache-2.0
//
// Collectives. Ranks agree on an operation before a byte of it moves, for an MPI library that is
// given different ones hangs or mixes them. What only moves is the library's own call, which knows
// the network; what adds is sent to its owner, folded there in the order of sdk/fold.hpp and sent
// on, so that the bits are those of every backend.
#include <algorithm>
#include <climits>
#include <cstring>

#include <orrery/sdk/plugin.hpp>
#include <orrery/sdk/traffic.hpp>

#include "../shared/operation.h"
#include "comm.h"

namespace mpi {
namespace {

// Above so many bytes a message travels in pieces: MPI counts in ints.
constexpr int64_t most_bytes = int64_t{1} << 30;

char* address(const orr_buffer& b) { return b.memory ? orr::data<char>(b) : nullptr; }

}  // namespace

void Comm::agree(const orr_coll& c) {
  const std::vector<uint64_t> words = gather(shared::fingerprint(c, size_));
  if (std::count(words.begin(), words.end(), words.front()) == size_) return;
  world_->fail(ORR_FAILED, shared::disagreement(gather(shared::card_of(c, size_)), world_of_));
}

int64_t Comm::move(bool sends, char* data, int64_t bytes, int peer, int tag, Requests& requests) {
  int64_t at = 0;
  do {
    const int n = static_cast<int>(std::min(most_bytes, bytes - at));
    MPI_Request* const request = &requests.emplace_back();
    if (sends)
      check_mpi(MPI_Isend(data + at, n, MPI_BYTE, peer, tag, comm_, request), "MPI_Isend");
    else
      check_mpi(MPI_Irecv(data + at, n, MPI_BYTE, peer, tag, comm_, request), "MPI_Irecv");
    at += n;
  } while (at < bytes);
  return bytes;
}

void Comm::exchange(const std::vector<orr::exchange::Message>& sends,
                    const std::vector<orr::exchange::Message>& recvs) {
  complete([&](Requests& all) {
    int64_t bytes = 0;
    for (const auto* list : {&recvs, &sends})
      for (const orr::exchange::Message& m : *list)
        bytes += move(list == &sends, m.data, m.bytes, m.peer, tag_of_collectives, all);
    return bytes;
  });
}

void Comm::broadcast(const orr_coll& c) {
  const bool root = rank_ == c.root_or_peer;
  char *send = address(c.send), *recv = address(c.recv);
  const int64_t bytes = c.count * orr_dtype_bytes(c.dtype);
  if (root && recv && recv != send && bytes > 0) std::memmove(recv, send, bytes);
  complete([&](Requests& pieces) {
    for (int64_t at = 0; at < bytes; at += most_bytes)
      check_mpi(
          MPI_Ibcast((root ? send : recv) + at, static_cast<int>(std::min(most_bytes, bytes - at)),
                     MPI_BYTE, c.root_or_peer, comm_, &pieces.emplace_back()),
          "MPI_Ibcast");
    return bytes;
  });
}

// More than the library can count goes by messages; all ranks know all counts. In place or not is a
// matter of all ranks to MPI, and one that has nothing cannot tell: here all are.
void Comm::all_gather(const orr_coll& c) {
  const int64_t unit = orr_dtype_bytes(c.dtype), bytes = orr::traffic::sum(c.counts, size_) * unit;
  if (bytes == 0) return;
  if (bytes > INT_MAX) return orr::exchange::move(c, rank_, size_, *this);
  std::vector<int> counts(size_), at(size_);
  for (int r = 0; r < size_; ++r) {
    counts[r] = static_cast<int>(c.counts[r] * unit);
    at[r] = r == 0 ? 0 : at[r - 1] + counts[r - 1];
  }
  char *send = address(c.send), *recv = address(c.recv);
  char* const own = recv + at[rank_];
  if (own != send && counts[rank_] > 0) std::memmove(own, send, counts[rank_]);
  complete([&](Requests& one) {
    check_mpi(MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_BYTE, recv, counts.data(), at.data(), MPI_BYTE,
                              comm_, &one.emplace_back()),
              "MPI_Iallgatherv");
    return bytes;
  });
}

void Comm::collective(const orr_coll& c) {
  current_ = &c;
  agree(c);
  switch (c.op) {
    case ORR_COLL_BARRIER: return;  // to agree is to have met
    case ORR_COLL_BROADCAST: return broadcast(c);
    case ORR_COLL_ALL_GATHER: return all_gather(c);
    // By messages, whatever the counts: a rank cannot tell whether others have more than the
    // library counts, and all must go the same way.
    case ORR_COLL_ALL_TO_ALL: return orr::exchange::move(c, rank_, size_, *this);
    default: return orr::exchange::reduce(c, rank_, size_, *this);
  }
}

}  // namespace mpi
