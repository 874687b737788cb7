// SPDX-License-Identifier: Apache-2.0
#include "plugin/watchdog.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "base/quiet.h"
#include "base/work.h"

namespace orrery {
namespace {

using std::chrono::nanoseconds;
using Clock = std::chrono::steady_clock;

constexpr nanoseconds longest_period{1'000'000'000}, shortest_period{10'000'000};

}  // namespace

std::string CallAges::Aged::text() const {
  return fmt::format("in '{}' of {} for {:.0f} s", function, plugin,
                     std::chrono::duration<double>(age).count());
}

std::vector<CallAges::Aged> CallAges::look(const std::vector<CallUnderWay>& calls, Time passed) {
  std::map<std::pair<const char*, const char*>, Age> together;
  std::map<std::pair<uint64_t, uint64_t>, Age> now;
  for (const CallUnderWay& call : calls) {
    Age& age = now[{call.thread, call.entry}] = {call.plugin, call.function};
    if (auto found = ages_.find({call.thread, call.entry}); found != ages_.end())
      age.age = found->second.age + passed, age.told = found->second.told;
    Age& all = together.try_emplace({call.plugin, call.function}, age).first->second;
    all.age = std::max(all.age, age.age), all.told = std::max(all.told, age.told);
  }
  ages_ = std::move(now);
  std::vector<Aged> told;
  for (auto& [name, all] : together)
    if (all.age >= deadline_ && all.age >= 2 * all.told)
      told.push_back({all.plugin, all.function, all.told = all.age});
  for (auto& [call, age] : ages_) age.told = together.at({age.plugin, age.function}).told;
  return told;
}

std::optional<CallAges::Aged> CallAges::oldest() const {
  const auto found = std::max_element(ages_.begin(), ages_.end(), [](const auto& a, const auto& b) {
    return a.second.age < b.second.age;
  });
  if (found == ages_.end()) return std::nullopt;
  return Aged{found->second.plugin, found->second.function, found->second.age};
}

Watchdog::Watchdog(std::string who, int64_t deadline_ns)
    : who_(std::move(who)),
      deadline_(deadline_ns),
      period_(std::clamp(deadline_ / 8, shortest_period, longest_period)),
      ages_(deadline_) {
  const AllSignalsBlocked quiet;
  thread_ = std::thread([this] { watch(); });
}

Watchdog::~Watchdog() {
  {
    std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

// If this process is stopped for a while, that counts as two periods at most.
void Watchdog::watch() {
  Clock::time_point begun = Clock::now();
  for (std::unique_lock lock(mutex_);
       !changed_.wait_for(lock, period_, [this] { return ends_; });) {
    const Clock::time_point now = Clock::now();
    look(std::min<nanoseconds>(now - std::exchange(begun, now), 2 * period_));
  }
}

void Watchdog::look(CallAges::Time passed) {
  for (const CallAges::Aged& call : ages_.look(Inside::under_way(), passed)) {
    const std::string work = main_work().text;
    fmt::print(stderr, "orrery: {} has been {}{}: it may be in an endless loop\n", who_,
               call.text(), work.empty() ? "" : ", " + work);
  }
  const std::optional<CallAges::Aged> oldest = ages_.oldest();
  note_plugin(oldest && oldest->age * 4 >= deadline_ * 3 ? oldest->text() : "");
}

}  // namespace orrery
