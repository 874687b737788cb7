// SPDX-License-Identifier: Apache-2.0
#include "run/reactor.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/error.h"
#include "job/environment.h"
#include "run/states.h"

namespace orrery {
namespace {

using Clock = std::chrono::steady_clock;

// The file of a server: that of the first has the name as it is given.
std::string file_of(const std::string& path, int server) {
  return server == 0 ? path : fmt::format("{}.{}", path, server);
}

HeldParts whole(const StateList& states) {
  HeldParts parts;
  for (auto& s : states) parts.push_back({s, {}});
  return parts;
}

}  // namespace

Reactor::Reactor(ServerShare share, Setting setting, Runtime& runtime)
    : setting_(std::move(setting)),
      share_(std::move(share)),
      masters_(share_.masters),
      workers_(static_cast<size_t>(setting_.world)) {
  for (const StateList& range : share_.arrived) {
    hold(whole(range), {}, 1);
    arrived_.emplace_back(range);
  }
  hold(whole(share_.masters), {}, 1);
  Blueprint b;
  b.program = share_.program, b.spread.world = setting_.world;
  update_ = std::make_unique<Variant>(b, 0, runtime, arena_);
  const Serving& how = setting_.how;
  const int server = setting_.server;
  try {
    if (!how.replay.empty())
      replay_ =
          std::make_unique<Replay>(file_of(how.replay, server), setting_.heading, setting_.world);
    if (!how.log.empty())
      log_ = std::make_unique<ArrivalLog>(file_of(how.log, server), setting_.heading);
  } catch (const Error& e) {
    throw Error(e.code(), how.line + ": " + e.what());
  }
}

void Reactor::open(int64_t steps_done) {
  std::vector<std::byte> now(masters_.bytes());
  Parcel(share_.params).pack(now.data());
  masters_.unpack(now.data());
  workers_.assign(workers_.size(), {});
  for (Worker& w : workers_) w.kept.resize(static_cast<size_t>(setting_.how.bound + 1));
  base_ = steps_done, version_ = 0, quiet_ = 0;
  if (log_) log_->begin(steps_done);
  if (replay_) replay_->begin(steps_done);
}

// Waits for a part of the deadline; true if it is ready. Fails when nothing at all has come for all
// of it.
template <class Ready>
bool Reactor::await(Lock& lock, Ready ready) {
  constexpr int parts = 4;
  const auto part = std::chrono::nanoseconds(deadline_ns() / parts);
  const bool done = changed_.wait_for(lock, part, [&] { return error_ || ready(); });
  if (error_) std::rethrow_exception(error_);
  if (done) return true;
  const auto now = Clock::now();
  if (events_ != quiet_since_)
    quiet_since_ = events_, quiet_ = 0, ticked_ = now;
  else if (now - ticked_ >= part)
    ++quiet_, ticked_ = now;  // one of all who wait here counts
  if (quiet_ > parts)
    fail(ORR_DEADLINE, "rank {} has not reached server {} for {} s", slowest(), setting_.server,
         deadline_ns() / 1000000000);
  return false;
}

int Reactor::slowest() const {
  int found = kNone;
  for (int r = 0; r < setting_.world; ++r)
    if (works(r) && (found == kNone || at(r).steps < at(found).steps)) found = r;
  return found;
}

bool Reactor::its_turn(const Arrival& arrival) const {
  if (!replay_) return true;
  const Arrival* next = replay_->next();
  if (next && next->worker != arrival.worker) return false;
  if (!next || next->kind != arrival.kind || next->clock != arrival.clock)
    fail(ORR_FAILED,
         "the log of arrivals '{}' has {} where rank {} comes with '{}': replay the script that "
         "was logged",
         replay_->path(), next ? "'" + to_string(*next) + "'" : "an end", arrival.worker,
         to_string(arrival));
  return true;
}

void Reactor::handled(const Arrival& arrival) {
  ++events_;
  if (replay_) {
    if (int64_t logged = replay_->next()->version; logged != arrival.version)
      fail(ORR_FAILED,
           "the log of arrivals '{}' has version {} of the weights where this run has '{}'",
           replay_->path(), logged, to_string(arrival));
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
  ++staleness_[(bounded() ? clock : version_) - read];
  w.steps = clock + 1, w.facts = std::move(facts);
  if (!works(setting_.server)) w.told[w.steps] = w.facts;
  if (bounded()) {
    Kept& kept = w.kept[static_cast<size_t>(clock) % w.kept.size()];
    kept = {w.facts, {values, values + value_bytes(rank)}};
    apply_complete();
  } else {
    put(rank, values);
    apply(w.facts, clock);
  }
  changed_.notify_all();
}

// Where the values of a push belong.
void Reactor::put(int rank, const std::byte* values) {
  size_t first = 0;
  for (int r = 0; bounded() && r < rank; ++r)
    first += static_cast<size_t>(setting_.ranges[static_cast<size_t>(r)]);
  for (int i = 0; i < setting_.ranges[static_cast<size_t>(rank)]; ++i) {
    const Parcel& to = arrived_[first + static_cast<size_t>(i)];
    to.unpack(values);
    values += to.bytes();
  }
}

void Reactor::apply(const Facts& facts, int64_t clock) {
  std::map<std::string, double> scalars;
  for (size_t i = 0; i < setting_.scalars.size(); ++i) scalars[setting_.scalars[i]] = facts[i];
  update_->set_scalars(scalars, base_ + clock + 1);
  update_->run();
  ++version_;
}

// With a bound: the steps that all workers have pushed.
void Reactor::apply_complete() {
  for (;;) {
    const Facts* facts = nullptr;
    if (at(slowest()).steps <= version_) return;
    for (int r = 0; r < setting_.world; ++r) {
      if (!works(r)) continue;
      const Kept& kept = at(r).kept[static_cast<size_t>(version_) % at(r).kept.size()];
      put(r, kept.values.data());
      facts = &kept.facts;
    }
    apply(*facts, version_);
  }
}

// With a bound, what one worker has done all others must do.
void Reactor::check_can_come() const {
  const Worker& behind = at(slowest());
  for (int r = 0; r < setting_.world && bounded() && behind.ended; ++r)
    if (at(r).steps > behind.steps)
      fail(
          ORR_INVALID,
          "rank {} has ended after {} steps, rank {} goes on: with a bound all take the same steps",
          slowest(), behind.steps, r);
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
    return (!bounded() || version_ >= clock - setting_.how.bound) &&
           its_turn({kind, rank, clock, version_});
  };
  if (!await(lock, ready)) return -1;
  if (kind == Arrival::pull) handled({kind, rank, clock, version_});
  if (!bounded()) w.steps = std::max(w.steps, clock);  // a step without samples is not pushed
  masters_.pack(to);
  return version_;
}

Reactor::Facts Reactor::outputs_of(int64_t steps) {
  Lock lock(mutex_);
  const int64_t push = setting_.how.push, due = (steps + push - 1) / push * push;
  while (!await(lock, [&] {
    for (int r = 0; r < setting_.world; ++r)
      if (works(r) && !at(r).ended && at(r).steps < due) return false;
    return true;
  })) {
  }
  Facts sum(setting_.outputs.size(), 0);
  int told = 0;
  for (Worker& w : workers_) {
    auto after = w.told.upper_bound(due);
    if (after == w.told.begin()) continue;  // it had no samples
    const auto newest = w.told.erase(w.told.begin(), std::prev(after));
    const Facts& facts = newest->second;
    if (std::isnan(facts[setting_.scalars.size()])) continue;
    ++told;
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += facts[setting_.scalars.size() + i];
  }
  if (told == 0)
    fail(ORR_INVALID,
         "all workers have ended before step {} of server {}: give all ranks the same steps", steps,
         setting_.server);
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

}  // namespace orrery
