// SPDX-License-Identifier: Apache-2.0
//
// Collectives. What only moves goes through the library's own, which know the network, as long as
// it can count it; more than an int of bytes, and all that adds, goes through messages.
#include <algorithm>
#include <climits>
#include <cstring>
#include <utility>

#include <orrery/sdk/plugin.hpp>
#include <orrery/sdk/traffic.hpp>

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

char* address(const orr_buffer& b) { return b.memory ? orr::data<char>(b) : nullptr; }

}  // namespace

// Every rank gets a word of every other that is the same where they post the same. The words travel
// beside the data; what a collective that meets another one has moved is lost, as its ranks are.
void Comm::begin_agreement(const orr_coll& c) {
  fingerprints_[rank_] = shared::fingerprint(c, size_);
  telling_.clear();
  agreeing_ = true;
  std::lock_guard lock(family_->inside());
  if (size_ > few_ranks) {
    check_mpi(MPI_Iallgather(MPI_IN_PLACE, 0, MPI_UINT64_T, fingerprints_.data(), 1, MPI_UINT64_T,
                             heads_, &telling_.emplace_back()),
              "MPI_Iallgather");
    return;
  }
  for (int r = 0; r < size_; ++r)
    if (r != rank_)
      check_mpi(MPI_Irecv(&fingerprints_[r], 1, MPI_UINT64_T, r, tag_of_agreement, main_,
                          &telling_.emplace_back()),
                "MPI_Irecv");
  for (int r = 0; r < size_; ++r)
    if (r != rank_)
      check_mpi(MPI_Isend(&fingerprints_[rank_], 1, MPI_UINT64_T, r, tag_of_agreement, main_,
                          &telling_.emplace_back()),
                "MPI_Isend");
}

// Only when the words differ do the cards travel, and then every rank says the same sentence.
void Comm::end_agreement() {
  if (!std::exchange(agreeing_, false)) return;
  finish(telling_, 0);
  const uint64_t mine = fingerprints_[rank_];
  if (std::all_of(fingerprints_.begin(), fingerprints_.end(),
                  [=](uint64_t word) { return word == mine; }))
    return;
  const shared::Card card = shared::card_of(*current_, size_);
  std::vector<shared::Card> cards(size_);
  telling_.clear();
  {
    std::lock_guard lock(family_->inside());
    check_mpi(MPI_Iallgather(&card, sizeof card, MPI_BYTE, cards.data(), sizeof card, MPI_BYTE,
                             heads_, &telling_.emplace_back()),
              "MPI_Iallgather");
  }
  finish(telling_, 0);
  for (int r = 1; r < size_; ++r)
    if (!shared::agree(cards[0], cards[r]))
      family_->die(ORR_FAILED,
                   shared::disagreement(cards[0], world_of_[0], cards[r], world_of_[r]));
}

void Comm::broadcast(const orr_coll& c) {
  const bool root = rank_ == c.root_or_peer;
  char *send = address(c.send), *recv = address(c.recv);
  const int64_t bytes = c.count * orr_dtype_bytes(c.dtype);
  if (root && recv && recv != send && bytes > 0) std::memmove(recv, send, bytes);
  std::vector<MPI_Request> pieces;
  {
    std::lock_guard lock(family_->inside());
    for (int64_t at = 0; at < bytes; at += most_bytes)
      check_mpi(
          MPI_Ibcast((root ? send : recv) + at, static_cast<int>(std::min(most_bytes, bytes - at)),
                     MPI_BYTE, c.root_or_peer, main_, &pieces.emplace_back()),
          "MPI_Ibcast");
  }
  end_agreement();
  finish(pieces, bytes);
}

void Comm::all_gather(const orr_coll& c) {
  const Layout l = layout_of(c.counts, size_, orr_dtype_bytes(c.dtype));
  if (l.at.empty() || size_ <= few_ranks) return orr::exchange::move(c, rank_, size_, *this);
  char *send = address(c.send), *recv = address(c.recv);
  const bool in_place = recv && send == recv + l.at[rank_];
  std::vector<MPI_Request> request(1);
  {
    std::lock_guard lock(family_->inside());
    check_mpi(MPI_Iallgatherv(in_place ? MPI_IN_PLACE : send, l.bytes[rank_], MPI_BYTE, recv,
                              l.bytes.data(), l.at.data(), MPI_BYTE, main_, request.data()),
              "MPI_Iallgatherv");
  }
  end_agreement();
  finish(request, l.at.back() + l.bytes.back());
}

// In place, what arrives may overwrite what is still to be sent: the messages' way keeps a copy.
void Comm::all_to_all(const orr_coll& c) {
  const int64_t unit = orr_dtype_bytes(c.dtype);
  const Layout out = layout_of(c.counts, size_, unit), in = layout_of(c.recv_counts, size_, unit);
  char *send = address(c.send), *recv = address(c.recv);
  if (out.at.empty() || in.at.empty() || c.send.memory == c.recv.memory)
    return orr::exchange::move(c, rank_, size_, *this);
  std::vector<MPI_Request> request(1);
  {
    std::lock_guard lock(family_->inside());
    check_mpi(MPI_Ialltoallv(send, out.bytes.data(), out.at.data(), MPI_BYTE, recv, in.bytes.data(),
                             in.at.data(), MPI_BYTE, main_, request.data()),
              "MPI_Ialltoallv");
  }
  end_agreement();
  finish(request, out.at.back() + out.bytes.back());
}

void Comm::collective(const orr_coll& c) {
  current_ = &c;
  begin_agreement(c);
  switch (c.op) {
    case ORR_COLL_BARRIER: break;  // to agree is to have met
    case ORR_COLL_BROADCAST: broadcast(c); break;
    case ORR_COLL_ALL_GATHER: all_gather(c); break;
    case ORR_COLL_ALL_TO_ALL: all_to_all(c); break;
    default: orr::exchange::reduce(c, rank_, size_, *this);
  }
  end_agreement();  // where nothing moved
}

}  // namespace mpi
