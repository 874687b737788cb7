// SPDX-License-Identifier: Apache-2.0
#include "reactor.h"

#include <algorithm>
#include <cmath>

#include "error.h"

namespace server {
namespace {

using Clock = std::chrono::steady_clock;

// Returns the name of a server's log: the given path for the first server, with the server's number
// appended for others.
std::string file_of(const std::string& path, int server) {
  return server == 0 ? path : text(path, ".", server);
}

}  // namespace

Reactor::Reactor(const Share& share, const Pace& pace, const std::string& heading,
                 const orr_driver_host& host)
    : pace_(pace),
      host_(host),
      program_(share.program),
      params_(host, share.params),
      masters_(host, share.masters),
      workers_(static_cast<size_t>(host.ranks)) {
  const std::vector<int64_t> leaf_first(host.leaf_first, host.leaf_first + host.ranks + 1);
  for (int r = 0; r < host.ranks; ++r)
    ranges_.push_back(static_cast<int>(pushed_leaves(pace, leaf_first, r).size()));
  for (const std::vector<std::string>& range : share.arrived) arrived_.emplace_back(host, range);
  if (!pace.replay.empty())
    replay_ = std::make_unique<Replay>(file_of(pace.replay, host.rank), heading, host.ranks);
  if (!pace.log.empty()) log_ = std::make_unique<ArrivalLog>(file_of(pace.log, host.rank), heading);
}

void Reactor::open(int64_t steps_done) {
  std::vector<std::byte> now(masters_.bytes());
  params_.pack(now.data());
  masters_.unpack(now.data());
  workers_.assign(workers_.size(), {});
  for (Worker& w : workers_) w.kept.resize(static_cast<size_t>(pace_.bound + 1));
  base_ = steps_done, version_ = 0, quiet_ = 0;
  if (log_) log_->begin(steps_done);
  if (replay_) replay_->begin(steps_done);
}

// Waits until `ready`, but only for a part of the deadline, and returns whether it is. Throws if no
// message at all has been handled for a whole deadline.
template <class Ready>
bool Reactor::await(Lock& lock, Ready ready) {
  constexpr int parts = 4;
  const auto part = std::chrono::nanoseconds(host_.deadline_ns / parts);
  const bool done = changed_.wait_for(lock, part, [&] { return error_ || ready(); });
  if (error_) std::rethrow_exception(error_);
  if (done) return true;
  const auto now = Clock::now();
  if (events_ != quiet_since_)
    quiet_since_ = events_, quiet_ = 0, ticked_ = now;
  else if (now - ticked_ >= part)
    ++quiet_, ticked_ = now;  // several threads may wait here: only one of them counts a part
  if (quiet_ > parts)
    fail(ORR_DEADLINE, "rank ", slowest(), " has not reached server ", host_.rank, " for ",
         host_.deadline_ns / 1000000000, " s");
  return false;
}

int Reactor::slowest() const {
  int found = -1;
  for (int r = 0; r < host_.ranks; ++r)
    if (works(r) && (found == -1 || at(r).steps < at(found).steps)) found = r;
  return found;
}

bool Reactor::its_turn(const Arrival& arrival) const {
  if (!replay_) return true;
  const Arrival* next = replay_->next();
  if (next && next->worker != arrival.worker) return false;
  if (!next || next->kind != arrival.kind || next->clock != arrival.clock)
    fail(ORR_FAILED, "the log of arrivals '", replay_->path(), "' has ",
         next ? "'" + to_string(*next) + "'" : "an end", " where rank ", arrival.worker,
         " comes with '", to_string(arrival), "': replay the script that was logged");
  return true;
}

void Reactor::handled(const Arrival& arrival) {
  ++events_;
  if (replay_) {
    if (int64_t logged = replay_->next()->version; logged != arrival.version)
      fail(ORR_FAILED, "the log of arrivals '", replay_->path(), "' has version ", logged,
           " of the weights where this run has '", to_string(arrival), "'");
    replay_->pass();
  }
  if (log_) log_->add(arrival);
  changed_.notify_all();
}

void Reactor::push(int rank, int64_t clock, int64_t read, Facts facts, const std::byte* values) {
  Lock lock(mutex_);
  Worker& w = at(rank);
  while (!await(lock, [&] { return its_turn({Arrival::push, rank, clock, version_}); })) {
  }
  handled({Arrival::push, rank, clock, version_});
  ++staleness_[(pace_.bounded() ? clock : version_) - read];
  w.steps = clock + 1;
  if (!works(host_.rank)) w.told[w.steps] = facts;
  if (pace_.bounded()) {
    Kept& kept = w.kept[static_cast<size_t>(clock) % w.kept.size()];
    kept = {std::move(facts), {values, values + value_bytes(rank)}};
    apply_complete();
  } else {
    put(rank, values);
    apply(facts, clock);
  }
  changed_.notify_all();
}

// Puts the values of a push into the states that they belong to.
void Reactor::put(int rank, const std::byte* values) {
  size_t first = 0;
  for (int r = 0; pace_.bounded() && r < rank; ++r)
    first += static_cast<size_t>(ranges_[static_cast<size_t>(r)]);
  for (int i = 0; i < ranges_[static_cast<size_t>(rank)]; ++i) {
    const orr::PackedStates& to = arrived_[first + static_cast<size_t>(i)];
    to.unpack(values);
    values += to.bytes();
  }
}

void Reactor::apply(const Facts& facts, int64_t clock) {
  orr::check(host_.run(host_.self, program_.c_str(), facts.data(), base_ + clock + 1));
  ++version_;
}

// With a bound: applies the steps that all workers have pushed.
void Reactor::apply_complete() {
  for (;;) {
    const Facts* facts = nullptr;
    if (at(slowest()).steps <= version_) return;
    for (int r = 0; r < host_.ranks; ++r) {
      if (!works(r)) continue;
      const Kept& kept = at(r).kept[static_cast<size_t>(version_) % at(r).kept.size()];
      put(r, kept.values.data());
      facts = &kept.facts;
    }
    apply(*facts, version_);
  }
}

// With a bound: throws if a worker has ended before others have, because their steps would wait for
// it forever.
void Reactor::check_can_come() const {
  const Worker& behind = at(slowest());
  for (int r = 0; r < host_.ranks && pace_.bounded() && behind.ended; ++r)
    if (at(r).steps > behind.steps)
      fail(ORR_INVALID, "rank ", slowest(), " has ended after ", behind.steps, " steps, rank ", r,
           " goes on: with a bound all take the same steps");
}

int64_t Reactor::weights(Arrival::Kind kind, int rank, int64_t clock, std::byte* to) {
  Lock lock(mutex_);
  Worker& w = at(rank);
  if (kind == Arrival::end && !w.ended) {
    if (!await(lock, [&] { return its_turn({kind, rank, clock, version_}); })) return -1;
    w.ended = true;
    handled({kind, rank, clock, version_});
  }
  const auto ready = [&] {
    check_can_come();
    if (kind == Arrival::end)
      return std::all_of(workers_.begin(), workers_.end(), [](auto& each) { return each.ended; });
    return (!pace_.bounded() || version_ >= clock - pace_.bound) &&
           its_turn({kind, rank, clock, version_});
  };
  if (!await(lock, ready)) return -1;
  if (kind == Arrival::pull) handled({kind, rank, clock, version_});
  if (!pace_.bounded())
    w.steps = std::max(w.steps, clock);  // steps without samples were not pushed
  masters_.pack(to);
  return version_;
}

Facts Reactor::outputs_of(int64_t steps) {
  Lock lock(mutex_);
  const int64_t push = pace_.push, due = (steps + push - 1) / push * push;
  while (!await(lock, [&] {
    for (int r = 0; r < host_.ranks; ++r)
      if (works(r) && !at(r).ended && at(r).steps < due) return false;
    return true;
  })) {
  }
  const auto scalars = static_cast<size_t>(host_.n_scalars);
  Facts sum(static_cast<size_t>(host_.n_outputs), 0);
  int told = 0;
  for (Worker& w : workers_) {
    auto after = w.told.upper_bound(due);
    if (after == w.told.begin()) continue;  // this worker had no samples
    const auto newest = w.told.erase(w.told.begin(), std::prev(after));
    const Facts& facts = newest->second;
    if (std::isnan(facts[scalars])) continue;
    ++told;
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += facts[scalars + i];
  }
  if (told == 0)
    fail(ORR_INVALID, "all workers have ended before step ", steps, " of server ", host_.rank,
         ": give all ranks the same steps");
  for (double& x : sum) x /= told;
  return sum;
}

void Reactor::stop(std::exception_ptr error) {
  Lock lock(mutex_);
  if (!error_) error_ = std::move(error);
  changed_.notify_all();
}

void Reactor::check() {
  Lock lock(mutex_);
  if (error_) std::rethrow_exception(error_);
}

}  // namespace server
