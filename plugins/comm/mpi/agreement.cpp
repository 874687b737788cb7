// SPDX-License-Identifier: Apache-2.0
//
// Every rank gets a word of every other that is the same where they post the same. The words travel
// beside the data; what a collective that meets another one has moved is lost, as its ranks are.
// Where all ranks can open one memory, a word is a store and a load there; else it is a message.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>

#include <orrery/sdk/plugin.hpp>

#include "../shared/attach.h"
#include "comm.h"
#include "wait.h"

namespace mpi {
namespace {

// What ranks tell each other while their communicator forms.
struct Introduction {
  int64_t world_rank;
  uint64_t host;
  int64_t card;  // of the first rank's memory, 0 if it has none
  int64_t process;
  uint64_t place;  // where that process has this
};

// Whether a rank has opened the first one's memory, and can reach its neighbour's own.
struct Reach {
  bool opens, reaches;
};

bool can_reach(const Introduction& theirs) {
  Introduction seen{};
  const int process = static_cast<int>(theirs.process);
  return shared::copy_own(process_vm_readv, process, theirs.place, &seen, sizeof seen) &&
         seen.world_rank == theirs.world_rank && seen.host == theirs.host &&
         shared::copy_own(process_vm_writev, process, theirs.place, &seen, sizeof seen);
}

}  // namespace

// A rank's words, by parity of its step. Two are enough: who comes to step n + 2 has left n + 1,
// for which it awaited every rank's word, and whoever gave that had read all words of n.
struct alignas(128) Comm::Notice {
  std::atomic<uint64_t> step;  // written last
  uint64_t words[2];
};

Comm::Notice& Comm::notice(int rank) const {
  return reinterpret_cast<Notice*>(common_.base())[rank];
}

// REQUIRES: all ranks call this.
template <class T>
std::vector<T> Comm::gather(const T& own) {
  std::vector<T> all(size_);
  by_library(0, [&](auto& one) {
    check_mpi(MPI_Iallgather(&own, sizeof own, MPI_BYTE, all.data(), sizeof own, MPI_BYTE, beside_,
                             &one.emplace_back()),
              "MPI_Iallgather");
  });
  return all;
}

void Comm::introduce() {
  const std::string host = shared::host_identity(family_->rank());
  const uint64_t notices = size_ * sizeof(Notice), bytes = notices + Heads::bytes(size_);
  if (rank_ == 0) open_common([&] { return shared::Mapping::create(bytes); });
  Introduction mine{family_->rank(), shared::hash(host.data(), host.size(), 0),
                    common_.base() ? common_.card() : 0, getpid(), 0};
  mine.place = reinterpret_cast<uint64_t>(&mine);
  const auto all = gather(mine);
  bool together = all[0].card != 0;
  for (const Introduction& i : all) together = together && i.host == all[0].host;
  if (rank_ > 0 && together) open_common([&] { return shared::Mapping::open(all[0].card); });
  together = together && common_.base();
  bool attached = together && can_reach(all[(rank_ + 1) % size_]);
  for (const Reach& r : gather(Reach{together, attached}))
    together = together && r.opens, attached = attached && r.reaches;
  common_.close_card();
  if (!together) common_ = {};
  if (together) heads_ = Heads(common_.base() + notices, rank_, size_);
  for (const Introduction& i : all) {
    world_of_.push_back(static_cast<int>(i.world_rank));
    if (attached) processes_.push_back(static_cast<int>(i.process));
  }
}

// What is out of reach is done without.
template <class F>
void Comm::open_common(F&& open) {
  try {
    common_ = open();
  } catch (const orr::Error&) {
  }
}

void Comm::begin_agreement(const orr_coll& c) {
  fingerprints_[rank_] = shared::fingerprint(c, size_);
  agreeing_ = true;
  if (!common_.base()) return send_words();
  ++step_;
  notice(rank_).words[step_ % 2] = fingerprints_[rank_];
  notice(rank_).step.store(step_, std::memory_order_release);
}

void Comm::send_words() {
  telling_.clear();
  std::lock_guard lock(family_->inside());
  if (size_ > few_ranks) {
    check_mpi(MPI_Iallgather(MPI_IN_PLACE, 0, MPI_UINT64_T, fingerprints_.data(), 1, MPI_UINT64_T,
                             beside_, &telling_.emplace_back()),
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

bool Comm::words_have_come() {
  for (int r = 0; r < size_; ++r) {
    if (notice(r).step.load(std::memory_order_acquire) < step_) return false;
    fingerprints_[r] = notice(r).words[step_ % 2];
  }
  return true;
}

void Comm::move_on(std::vector<MPI_Request>& moving, std::optional<orr::Error>& failure) {
  if (moving.empty() || failure) return;
  try {
    test(moving.data(), moving.size());
  } catch (const orr::Error& e) {
    failure = e;
  }
}

// Only when the words differ do the cards travel, and then every rank says the same sentence.
void Comm::end_agreement(std::vector<MPI_Request>& beside) {
  if (!std::exchange(agreeing_, false)) return;
  std::optional<orr::Error> failure;  // of what moves, which unequal words would explain
  if (!common_.base()) {
    finish(telling_, 0);
  } else if (!words_have_come()) {
    await(0, [&] {
      move_on(beside, failure);
      return words_have_come();
    });
  }
  const uint64_t mine = fingerprints_[rank_];
  if (std::all_of(fingerprints_.begin(), fingerprints_.end(),
                  [=](uint64_t word) { return word == mine; })) {
    if (failure) throw *failure;
    return;
  }
  const auto cards = gather(shared::card_of(*current_, size_));
  for (int r = 1; r < size_; ++r)
    if (!shared::agree(cards[0], cards[r]))
      family_->die(ORR_FAILED,
                   shared::disagreement(cards[0], world_of_[0], cards[r], world_of_[r]));
}

}  // namespace mpi
