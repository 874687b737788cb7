// SPDX-License-Identifier: Apache-2.0
//
// Collectives. What only moves goes through the library's own, which know the network, as long as
// it can count it; more than an int of bytes, and all that adds, goes through messages.
#include <algorithm>
#include <climits>
#include <cstring>

#include <orrery/sdk/plugin.hpp>
#include <orrery/sdk/traffic.hpp>

#include "../shared/pages.h"
#include "comm.h"
#include "wait.h"

namespace mpi {
namespace {

// Counts and places in bytes, as the library takes them; empty when they do not fit.
struct Layout {
  std::vector<int> bytes, at;
};

Layout layout_of(const int64_t* counts, int ranks, int64_t unit) {
  Layout l;
  if (orr::traffic::sum(counts, ranks) * unit > INT_MAX) return l;
  int64_t at = 0;
  for (int r = 0; r < ranks; ++r) {
    l.bytes.push_back(static_cast<int>(counts[r] * unit));
    l.at.push_back(static_cast<int>(at));
    at += counts[r] * unit;
  }
  return l;
}

// A round of messages costs more than what a larger scratch leaves of the cache.
struct Hands : orr::exchange::HostHands {
  using HostHands::HostHands;
  static constexpr int64_t most_scratch = 4 << 20;

  static char* scratch(int64_t bytes) {
    thread_local shared::Pages pages;
    thread_local uint64_t capacity = 0;
    if (static_cast<uint64_t>(bytes) > capacity) {
      capacity = (static_cast<uint64_t>(bytes) / shared::huge_page + 1) * shared::huge_page;
      pages = shared::take_huge_pages(capacity);
    }
    return pages.get();
  }
};

char* address(const orr_buffer& b) { return b.memory ? orr::data<char>(b) : nullptr; }

}  // namespace

void Comm::broadcast(const orr_coll& c) {
  const bool root = rank_ == c.root_or_peer;
  char *send = address(c.send), *recv = address(c.recv);
  const int64_t bytes = c.count * orr_dtype_bytes(c.dtype);
  if (root && recv && recv != send && bytes > 0) std::memmove(recv, send, bytes);
  by_library(bytes, [&](auto& pieces) {
    for (int64_t at = 0; at < bytes; at += most_bytes)
      check_mpi(
          MPI_Ibcast((root ? send : recv) + at, static_cast<int>(std::min(most_bytes, bytes - at)),
                     MPI_BYTE, c.root_or_peer, main_, &pieces.emplace_back()),
          "MPI_Ibcast");
  });
}

// An all_gather by messages, without memory of the heap.
void Comm::swap_parts(const orr_coll& c) {
  const int64_t unit = orr_dtype_bytes(c.dtype), own = c.counts[rank_] * unit;
  char *from = address(c.send), *to = address(c.recv);
  sends_.clear(), recvs_.clear();
  for (int r = 0; r < size_; ++r) {
    const int64_t bytes = c.counts[r] * unit;
    if (r == rank_ && bytes > 0 && from != to) std::memmove(to, from, bytes);
    if (r != rank_ && own > 0) sends_.push_back({r, from, own});
    if (r != rank_ && bytes > 0) recvs_.push_back({r, to, bytes});
    to += bytes;
  }
  exchange(sends_, recvs_);
}

void Comm::all_gather(const orr_coll& c) {
  if (size_ <= few_ranks) return swap_parts(c);
  const Layout l = layout_of(c.counts, size_, orr_dtype_bytes(c.dtype));
  if (l.at.empty()) return orr::exchange::move(c, rank_, size_, *this);
  char *send = address(c.send), *recv = address(c.recv);
  const bool in_place = recv && send == recv + l.at[rank_];
  by_library(l.at.back() + l.bytes.back(), [&](auto& one) {
    check_mpi(MPI_Iallgatherv(in_place ? MPI_IN_PLACE : send, l.bytes[rank_], MPI_BYTE, recv,
                              l.bytes.data(), l.at.data(), MPI_BYTE, main_, &one.emplace_back()),
              "MPI_Iallgatherv");
  });
}

// By messages, whatever the counts: a rank whose parts are empty cannot tell whether the others
// work in place, or have more than the library counts, and all must go the same way.
void Comm::all_to_all(const orr_coll& c) { orr::exchange::move(c, rank_, size_, *this); }

void Comm::reduce(const orr_coll& c) {
  Hands hands(c, size_, *this);
  orr::exchange::Reduction(c, rank_, size_, hands).run();
}

void Comm::collective(const orr_coll& c) {
  current_ = &c;
  begin_agreement(c);
  switch (c.op) {
    case ORR_COLL_BARRIER: break;  // to agree is to have met
    case ORR_COLL_BROADCAST: broadcast(c); break;
    case ORR_COLL_ALL_GATHER: all_gather(c); break;
    case ORR_COLL_ALL_TO_ALL: all_to_all(c); break;
    default: reduce(c);
  }
  std::vector<MPI_Request> nothing;
  end_agreement(nothing);  // where nothing has moved
}

}  // namespace mpi
