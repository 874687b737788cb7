// SPDX-License-Identifier: Apache-2.0
#include "comm.h"

#include <numeric>

#include <orrery/sdk/traffic.hpp>

#include "../shared/blame.h"

namespace nccl {
namespace {

constexpr int64_t ms = 1000000;
constexpr int64_t time_to_stop = 1000 * ms;
constexpr int64_t time_to_say = 50 * ms;  // a wait that ends within it is of no interest to others

ncclConfig_t not_blocking() {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  return config;
}

// Until done() or the time is over. For what must end although the world is dead.
template <class F>
bool soon(int64_t patience, F&& done) {
  for (const int64_t end = shared::now_ns() + patience; !done(); sched_yield())
    if (shared::now_ns() > end) return false;
  return true;
}

}  // namespace

Work::Work(const orr_coll& c, int ranks)
    : coll(c), name(c.name ? c.name : ""), where(c.where ? c.where : "") {
  if (c.counts) counts.assign(c.counts, c.counts + ranks);
  if (c.recv_counts) recv_counts.assign(c.recv_counts, c.recv_counts + ranks);
  coll.name = name.c_str(), coll.where = where.c_str();
  coll.counts = counts.data(), coll.recv_counts = recv_counts.data();
}

Comm::Comm(std::shared_ptr<Family> family, std::vector<int> world_of, int rank)
    : family_(std::move(family)),
      world_of_(std::move(world_of)),
      rank_(rank),
      size_(static_cast<int>(world_of_.size())),
      id_(1) {}

std::unique_ptr<Comm> Comm::form_world(const orr_comm_boot& boot) {
  auto family = std::make_shared<Family>(boot);
  std::vector<int> all(static_cast<size_t>(boot.world_size));
  std::iota(all.begin(), all.end(), 0);
  std::unique_ptr<Comm> comm(new Comm(family, all, boot.rank));
  const ncclUniqueId id = family->meet();
  ncclConfig_t config = not_blocking();
  comm->guarded([&] {
    constexpr const char* what = "ncclCommInitRankConfig";
    ncclComm_t& made = comm->made_;
    check_nccl(library().ncclCommInitRankConfig(&made, boot.world_size, id, boot.rank, &config),
               what);
    comm->comm_ = comm->await_pointer(made);
    comm->settle(ncclSuccess, what);
  });
  return comm;
}

// The ranks of the part learn from each other who they are.
std::unique_ptr<Comm> Comm::split(int32_t color, int32_t key) {
  family_->check_alive();
  family_->device().enter();
  std::unique_ptr<Comm> part;
  guarded([&] {
    std::vector<int64_t> choices(3 * static_cast<size_t>(size_));
    const int64_t mine[] = {color, key, family_->rank()};
    gather(mine, sizeof mine, choices.data());
    ncclConfig_t config = not_blocking();
    made_ = nullptr;
    settle(library().ncclCommSplit(comm_, color < 0 ? NCCL_SPLIT_NOCOLOR : color, key, &made_,
                                   &config),
           "ncclCommSplit");
    ++children_;
    if (color < 0) return;
    std::vector<int> members(static_cast<size_t>(size_));
    std::iota(members.begin(), members.end(), 0);
    std::erase_if(members, [&](int r) { return choices[3 * r] != color; });
    std::stable_sort(members.begin(), members.end(),
                     [&](int a, int b) { return choices[3 * a + 1] < choices[3 * b + 1]; });
    const auto at = std::find(members.begin(), members.end(), rank_) - members.begin();
    for (int& r : members) r = static_cast<int>(choices[3 * r + 2]);
    part.reset(new Comm(family_, members, static_cast<int>(at)));
    const uint64_t words[] = {id_, children_, static_cast<uint64_t>(color)};
    part->id_ = shared::hash(words, sizeof words, 3);
    part->comm_ = await_pointer(made_);
    part->settle(ncclSuccess, "ncclCommSplit");
  });
  return part;
}

Comm::~Comm() {
  if (!comm_) return;
  try {
    family_->device().enter();
    family_->failing() ? halt() : part_in_order();
  } catch (const orr::Error&) {
    halt();  // a peer went while parting: nobody is left to be told
  }
}

// Finalising waits for what is under way on all ranks; only then is destroying local.
void Comm::part_in_order() {
  settle(library().ncclCommFinalize(comm_), "ncclCommFinalize");
  library().ncclCommDestroy(comm_);
  comm_ = nullptr;
}

// Ends what is under way, whatever the peers do. A revoked communicator is at rest and can be
// destroyed; an aborted one is gone. Until our stream is idle it may write into our memory.
void Comm::halt() {
  const Library& lib = library();
  if (!comm_) return;
  ncclResult_t state = ncclInvalidUsage;
  const ncclResult_t asked = lib.revoke ? lib.revoke(comm_, 0) : ncclInvalidUsage;
  const bool revoked =
      (asked == ncclSuccess || asked == ncclInProgress) && soon(time_to_stop, [&] {
        return lib.ncclCommGetAsyncError(comm_, &state) != ncclSuccess || state != ncclInProgress;
      });
  if (revoked && state == ncclSuccess)
    lib.ncclCommDestroy(comm_);
  else
    lib.ncclCommAbort(comm_);
  comm_ = nullptr;
  soon(time_to_stop,
       [&] { return lib.cuStreamQuery(family_->device().stream()) != CUDA_ERROR_NOT_READY; });
}

ncclComm_t Comm::await_pointer(ncclComm_t& place) {
  const std::atomic_ref<ncclComm_t> made(place);
  await(0, [&] { return made.load() != nullptr; });
  return made.load();
}

ncclResult_t Comm::state() const {
  ncclResult_t state = ncclSuccess;
  if (comm_) check_nccl(library().ncclCommGetAsyncError(comm_, &state), "ncclCommGetAsyncError");
  return state;
}

void Comm::settle(ncclResult_t code, const char* what) {
  check_nccl(code, what);
  await(0, [&] { return (code = state()) != ncclInProgress; });
  check_nccl(code, what);
}

void Comm::look_for_dead() {
  const int dead = shared::first_dead(family_->boot(), world_of_);
  if (dead < 0) return;
  family_->listen();  // it may have ended because of another
  family_->fail(ORR_RETRY,
                "rank " + std::to_string(dead) + " died" + shared::in_operation(current_));
}

// Once a millisecond of waiting: has somebody ended the world, is a peer gone, is it too late?
void Comm::look_around(Waited& w, int64_t waited) {
  family_->listen();
  look_for_dead();
  check_nccl(state(), "asynchronous error");
  if (waited <= 0) return;
  if (!w.wait) w.wait.emplace(family_->boot(), current_);
  if (waited > time_to_say && !w.said) family_->say(own_awaited()), w.said = true;
  const bool named = current_ && shared::paired(*current_);
  const int other = world_of_.front() == family_->rank() ? world_of_.back() : world_of_.front();
  const std::string verdict = w.wait->look(named ? world_of_[current_->root_or_peer] : other);
  if (verdict.empty()) return;
  compare_waits(family_->all_awaited());
  family_->fail(ORR_DEADLINE, verdict);
}

Awaited Comm::own_awaited() const {
  Awaited b{};
  if (!current_) return b;
  b.comm = id_;
  b.card = shared::card_of(*current_, size_);
  b.message = shared::paired(*current_);
  if (b.message) b.peer = world_of_[current_->root_or_peer], b.tag = current_->tag;
  return b;
}

// A library that fails may do so because a peer has gone, which the launcher is about to see.
void Comm::explain(int32_t code, const std::string& text) {
  const std::string where = shared::in_operation(current_);
  try {
    family_->check_alive();
    soon(500 * ms, [&] {
      look_for_dead();
      return false;
    });
    family_->fail(code, text + where);
  } catch (const orr::Error&) {
    current_ = nullptr;
    halt();
    throw;
  }
}

std::unique_ptr<Work> Comm::post(const orr_coll* ops, int n) {
  family_->check_alive();
  family_->device().enter();
  std::vector<orr_coll> near, far;
  for (int i = 0; i < n; ++i) {
    shared::check(ops[i], rank_, size_, false, true);
    const bool device = shared::on_device(ops[i]);
    if (device) check_device(ops[i], far.empty() ? ops[i] : far.front());
    (device ? far : near).push_back(ops[i]);
  }
  std::unique_ptr<Work> work;
  guarded([&] {
    transfer(near);
    for (const orr_coll& c : near)
      if (!shared::paired(c)) collective(c);
    if (!far.empty()) work = enqueue(far);
  });
  uint64_t sent = 0;
  for (int i = 0; i < n; ++i) sent += orr::traffic::bytes_sent(ops[i], rank_, size_);
  bytes_sent_.fetch_add(sent, std::memory_order_relaxed);
  return work;
}

void Comm::wait(Work& work) {
  family_->check_alive();
  family_->device().enter();
  guarded([&] {
    current_ = &work.coll;
    await(0, [&] { return work.end.done(); });
  });
}

}  // namespace nccl
