// SPDX-License-Identifier: Apache-2.0
#include "comm.h"

#include <algorithm>

#include <orrery/sdk/plugin.hpp>
#include <orrery/sdk/traffic.hpp>

#include "../shared/blame.h"
#include "wait.h"

namespace mpi {

// The duplicates are asked for without waiting, like everything that takes peers.
Comm::Comm(std::shared_ptr<Family> family, MPI_Comm parent) : family_(std::move(family)) {
  check_mpi(MPI_Comm_rank(parent, &rank_), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(parent, &size_), "MPI_Comm_size");
  sent_.assign(size_, 0);
  fingerprints_.assign(size_, 0);
  std::vector<MPI_Request> forming(2);
  check_mpi(MPI_Comm_idup(parent, &main_, &forming[0]), "MPI_Comm_idup");
  check_mpi(MPI_Comm_idup(parent, &beside_, &forming[1]), "MPI_Comm_idup");
  finish(forming, 0);
  introduce();
}

// Freeing is collective in name only: the libraries do it locally.
Comm::~Comm() {
  if (family_->failing()) return;
  std::lock_guard lock(family_->inside());
  for (MPI_Comm* c : {&main_, &beside_})
    if (*c != MPI_COMM_NULL) MPI_Comm_free(c);
}

std::unique_ptr<Comm> Comm::form_world(const orr_comm_boot& boot) {
  return std::unique_ptr<Comm>(new Comm(std::make_shared<Family>(boot), MPI_COMM_WORLD));
}

// The library's split blocks: it is called when all ranks are known to be there.
std::unique_ptr<Comm> Comm::split(int32_t color, int32_t key) {
  family_->check_alive();
  by_library(
      0, [&](auto& one) { check_mpi(MPI_Ibarrier(main_, &one.emplace_back()), "MPI_Ibarrier"); });
  MPI_Comm part = MPI_COMM_NULL;
  {
    std::lock_guard lock(family_->inside());
    check_mpi(MPI_Comm_split(main_, color < 0 ? MPI_UNDEFINED : color, key, &part),
              "MPI_Comm_split");
  }
  if (part == MPI_COMM_NULL) return nullptr;
  std::unique_ptr<Comm> child(new Comm(family_, part));
  MPI_Comm_free(&part);
  return child;
}

bool Comm::test(MPI_Request* requests, size_t n) {
  std::lock_guard lock(family_->inside());
  int done = 0;
  check_mpi(MPI_Testall(static_cast<int>(n), requests, &done, MPI_STATUSES_IGNORE), "MPI_Testall");
  return done != 0;
}

void Comm::finish(std::vector<MPI_Request>& requests, int64_t bytes) {
  await(bytes, [&] { return test(requests.data(), requests.size()); });
}

// Once a millisecond of waiting: has somebody ended the world, is a peer gone, is it too late?
void Comm::look_around(int64_t waited, int64_t deadline, int64_t& asked_at) {
  {
    std::lock_guard lock(family_->inside());
    family_->listen();
  }
  family_->check_alive();
  const int dead = shared::first_dead(family_->boot(), world_of_);
  if (dead >= 0)
    family_->die(ORR_RETRY,
                 "rank " + std::to_string(dead) + " died" + shared::in_operation(current_));
  if (asked_at < 0) {
    if (waited < std::max(deadline, -asked_at)) return;
    asked_at = waited;
    std::lock_guard lock(family_->inside());
    family_->ask_all();
  } else if (waited - asked_at > shared::time_to_answer_ns) {
    blame(asked_at / deadline * deadline);
    asked_at = -(waited + deadline);
  }
}

// Who waits answers at once. Who does not is frozen, or computes. Returns if it is to be waited
// for.
void Comm::blame(int64_t waited) {
  const std::string where = shared::in_operation(current_);
  if (const std::vector<int> silent = family_->silent(); !silent.empty()) {
    const std::string verdict = shared::judge(family_->boot(), silent, waited, where);
    if (verdict.empty()) return;
    family_->die(ORR_DEADLINE, verdict);
  }
  const bool named = current_ && shared::paired(*current_) && current_->root_or_peer >= 0;
  const int other =
      named ? world_of_[current_->root_or_peer] : world_of_[rank_ == 0 ? size_ - 1 : 0];
  family_->die(ORR_DEADLINE, "ranks " + std::to_string(other) + " and " +
                                 std::to_string(family_->rank()) + " wait for each other since " +
                                 shared::seconds(waited) + where);
}

void Comm::check(const orr_coll& c) const {
  shared::check(c, rank_, size_, true);
  if (!shared::paired(c) || (c.tag >= 0 && c.tag <= family_->largest_tag())) return;
  throw orr::Error(ORR_INVALID, std::string(orr::traffic::name(c.op)) + ": tag " +
                                    std::to_string(c.tag) + " is outside of 0.." +
                                    std::to_string(family_->largest_tag()));
}

// A group's sends and receives start together; its collectives follow in their order.
void Comm::run(const orr_coll* ops, int n) {
  family_->check_alive();
  for (int i = 0; i < n; ++i) check(ops[i]);
  try {
    transfer(ops, n);
    for (int i = 0; i < n; ++i)
      if (!shared::paired(ops[i])) collective(ops[i]);
  } catch (const orr::Error& e) {
    heads_.close();
    family_->die(e.code, e.what());  // what was under way is lost for all
  }
  current_ = nullptr;
  uint64_t sent = 0;
  for (int i = 0; i < n; ++i) sent += orr::traffic::bytes_sent(ops[i], rank_, size_);
  bytes_sent_.fetch_add(sent, std::memory_order_relaxed);
}

}  // namespace mpi
