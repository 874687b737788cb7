// SPDX-License-Identifier: Apache-2.0
#include "comm.h"

#include <orrery/sdk/plugin.hpp>
#include <orrery/sdk/traffic.hpp>

#include "../shared/blame.h"
#include "../shared/operation.h"
#include "../shared/waiting.h"

namespace mpi {

Comm::Comm(std::shared_ptr<World> world, MPI_Comm comm) : world_(std::move(world)), comm_(comm) {
  check_mpi(MPI_Comm_rank(comm_, &rank_), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(comm_, &size_), "MPI_Comm_size");
  std::vector<int> here;
  for (int r = 0; r < size_; ++r) here.push_back(r);
  world_of_.resize(size_);
  MPI_Group mine, all;
  check_mpi(MPI_Comm_group(comm_, &mine), "MPI_Comm_group");
  check_mpi(MPI_Comm_group(MPI_COMM_WORLD, &all), "MPI_Comm_group");
  check_mpi(MPI_Group_translate_ranks(mine, size_, here.data(), all, world_of_.data()),
            "MPI_Group_translate_ranks");
  MPI_Group_free(&mine);
  MPI_Group_free(&all);
}

// Freeing is collective in name only: the libraries do it locally.
Comm::~Comm() {
  if (world_->failing() || comm_ == MPI_COMM_WORLD) return;
  std::lock_guard hold(world_->lock());
  MPI_Comm_free(&comm_);
}

std::unique_ptr<Comm> Comm::form_world(const orr_comm_boot& boot) {
  return std::unique_ptr<Comm>(new Comm(std::make_shared<World>(boot), MPI_COMM_WORLD));
}

// The library's split blocks: it is called when all ranks are known to be there.
std::unique_ptr<Comm> Comm::split(int32_t color, int32_t key) {
  world_->check_alive();
  gather(rank_);
  std::lock_guard hold(world_->lock());
  MPI_Comm part = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split(comm_, color < 0 ? MPI_UNDEFINED : color, key, &part), "MPI_Comm_split");
  if (part == MPI_COMM_NULL) return nullptr;
  return std::unique_ptr<Comm>(new Comm(world_, part));
}

bool Comm::test(MPI_Request* requests, size_t n) {
  std::lock_guard hold(world_->lock());
  int done = 0;
  check_mpi(MPI_Testall(static_cast<int>(n), requests, &done, MPI_STATUSES_IGNORE), "MPI_Testall");
  return done != 0;
}

// Looks around once a millisecond: has the world ended, is a peer gone, is it too late? Who waits
// answers at once when it is asked; who does not is frozen, or computes.
void Comm::await(int64_t bytes, const std::function<bool()>& done) {
  shared::Patience patience;
  int64_t asked_at = 0;
  const auto look_around = [&](int64_t waited) {
    world_->serve();
    world_->check_alive();
    const int dead = shared::first_dead(world_->boot(), world_of_);
    if (dead >= 0)
      world_->fail(ORR_RETRY,
                   "rank " + std::to_string(dead) + " died" + shared::in_operation(current_));
    const auto step = patience.step(waited, shared::deadline_of(current_, world_->boot()));
    if (step == shared::Patience::ask) {
      asked_at = shared::now_ns();
      world_->ask_all();
    } else if (step == shared::Patience::judge) {
      const std::string verdict = shared::judge_wait(world_->boot(), world_->silent_since(asked_at),
                                                     patience.waited_ns(), current_, world_of_);
      if (!verdict.empty()) world_->fail(ORR_DEADLINE, verdict);
    }
  };
  shared::wait_until(world_->has_own_cpu(), bytes, done, look_around);
}

// A group's sends and receives start together; its collectives follow in their order.
void Comm::run(const orr_coll* ops, int n) {
  world_->check_alive();
  for (int i = 0; i < n; ++i) shared::check(ops[i], rank_, size_, true);
  try {
    transfer(ops, n);
    for (int i = 0; i < n; ++i)
      if (!shared::paired(ops[i])) collective(ops[i]);
  } catch (const orr::Error& e) {
    world_->fail(e.code, e.what());  // what was under way is lost for all
  }
  current_ = nullptr;
  for (int i = 0; i < n; ++i)
    bytes_sent_.fetch_add(orr::traffic::bytes_sent(ops[i], rank_, size_),
                          std::memory_order_relaxed);
}

}  // namespace mpi
