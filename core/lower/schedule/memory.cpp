// SPDX-License-Identifier: Apache-2.0
//
// Gives every storage its offset, before the run. A storage lives from its first write to its last
// read in the schedule, once for every microbatch; where these lifetimes overlap, it needs several
// slots. The largest storages are placed first, each at the lowest offset that is free during its
// whole life; of storages of about equal size the earliest, if that takes less.
#include <algorithm>
#include <span>

#include "lower/lower.h"
#include "lower/schedule/first_fit.h"
#include "lower/schedule/touched.h"

namespace orrery {
namespace {

uint64_t aligned(uint64_t n, uint64_t to) { return (n + to - 1) / to * to; }

using Lifetime = std::pair<int, int>;  // steps [first, last]
using Lifetimes = std::vector<
    Lifetime>;  // by microbatch, {-1, -1} if it has none; microbatch 0 for what has one slot

int last_of(const std::vector<Lifetime>& spans) {
  int last = 0;
  for (auto& [first, end] : spans) last = std::max(last, end);
  return last;
}

class LifetimeFinder {
 public:
  explicit LifetimeFinder(RankPlan& plan) : plan_(plan), lifetimes_(plan.storages.size()) {}

  void run() {
    int end = static_cast<int>(plan_.schedule.size());
    for (int step = 0; step < end; ++step)
      touch_all(plan_.schedule[static_cast<size_t>(step)], step);
    const Program& p = plan_.local.program;
    for (auto& [name, id] : p.outputs())
      if (int storage = plan_.places[static_cast<size_t>(id)].storage; storage != kNone)
        touch(storage, 0, end);
    for (size_t i = 0; i < lifetimes_.size(); ++i) settle(plan_.storages[i], lifetimes_[i]);
    // A value that is given from outside lives from the first step.
    for (size_t v = 0; v < p.values().size(); ++v)
      if (p.values()[v].producer == kNone && plan_.places[v].storage != kNone) {
        Storage& s = plan_.storage(plan_.places[v].storage);
        if (s.category == "input" && !s.alive.empty()) s.alive = {{0, s.alive.back().second}};
      }
  }

 private:
  void touch(int storage, int microbatch, int step) {
    Lifetimes& lifetimes = lifetimes_[static_cast<size_t>(storage)];
    if (lifetimes.size() <= static_cast<size_t>(microbatch))
      lifetimes.resize(static_cast<size_t>(microbatch) + 1, {-1, -1});
    Lifetime& lifetime = lifetimes[static_cast<size_t>(microbatch)];
    if (lifetime.first < 0) lifetime.first = step;
    lifetime.second = step;
  }

  void touch_all(const Step& s, int step) {
    auto at = [&](int x) { touch(x, plan_.storage(x).by == Slots::ring ? s.microbatch : 0, step); };
    each_touched(plan_, s, at, at);
    if (s.kind != Step::launch) return;
    const int workspace = plan_.launches[static_cast<size_t>(s.index)].workspace;
    if (workspace != kNone) touch(workspace, s.microbatch, step);
  }

  // Microbatches use the slots in turn. The number of slots is that of the microbatches from the
  // oldest to the newest that are alive together.
  static void settle(Storage& s, const Lifetimes& lifetimes) {
    bool given = s.category == "input";
    if (s.by == Slots::ring && !given) {
      // Every chunk runs its microbatches in order, so lifetimes begin and end in order as well.
      size_t oldest = 0;
      for (size_t microbatch = 0; microbatch < lifetimes.size(); ++microbatch) {
        if (lifetimes[microbatch].first < 0) continue;
        while (lifetimes[oldest].second < lifetimes[microbatch].first) ++oldest;
        s.slots = std::max<int64_t>(s.slots, static_cast<int64_t>(microbatch - oldest + 1));
      }
    }
    for (const Lifetime& lifetime : lifetimes)
      if (lifetime.first >= 0) s.alive.push_back(lifetime);
    if (s.alive.empty()) return;
    std::sort(s.alive.begin(), s.alive.end());
    if (s.slots > 1) s.alive = {{s.alive.front().first, last_of(s.alive)}};
  }

  RankPlan& plan_;
  std::vector<Lifetimes> lifetimes_;
};

}  // namespace

bool Storage::alive_at(int step) const {
  auto next = std::upper_bound(alive.begin(), alive.end(), std::pair<int, int>{step, INT32_MAX});
  return next != alive.begin() && step <= std::prev(next)->second;
}

bool Storage::meets(const Storage& other) const {
  for (auto a = alive.begin(), b = other.alive.begin();
       a != alive.end() && b != other.alive.end();) {
    if (a->second < b->first)
      ++a;
    else if (b->second < a->first)
      ++b;
    else
      return true;
  }
  return false;
}

namespace {

// As many of the largest storages are tried in the order of time; more would take long.
constexpr size_t kTried = 1000;

// Places each storage in this order. Returns how many bytes all take.
uint64_t place_in_order(std::span<Storage* const> storages, uint64_t alignment) {
  FirstFit fit(alignment);
  for (Storage* s : storages) fit.place(*s);
  return fit.bytes();
}

// Sorts storages of about equal size by time. REQUIRES: the largest come first.
void order_by_time(std::span<Storage*> storages) {
  for (auto begin = storages.begin(); begin != storages.end();) {
    const auto end = std::find_if(begin, storages.end(), [&](const Storage* s) {
      return s->whole() < (*begin)->whole() / 4 * 3;
    });
    std::stable_sort(begin, end,
                     [](const Storage* a, const Storage* b) { return a->alive < b->alive; });
    begin = end;
  }
}

}  // namespace

// Gives each storage an offset, so that storages which are alive at the same time do not overlap.
// Returns the bytes that all take. The largest are placed first, and lie as low as they can.
//
// That order has a weakness. Of a chain of layers, each result is alive together with the next one
// alone: two places, taken in turn, are enough for all. But a result that is a little larger than
// the others is placed before them, perhaps where a neighbour of it will have to lie, and the chain
// takes a third place. So storages of nearly equal size are also tried in the order in which they
// begin to live, and the order that takes fewer bytes is kept.
//
// Buckets have the same offsets on all ranks, because nothing decides but their sizes and the order
// in which they begin and end.
uint64_t lay_out(std::vector<Storage*>& storages, uint64_t alignment) {
  std::stable_sort(storages.begin(), storages.end(),
                   [](const Storage* a, const Storage* b) { return a->whole() > b->whole(); });
  std::vector<Storage*> ordered = storages;
  const size_t tried = std::min(kTried, ordered.size());
  order_by_time(std::span(ordered).first(tried));
  const auto place_tried = [&](const std::vector<Storage*>& all) {
    return place_in_order(std::span(all).first(tried), alignment);
  };
  const bool helps = place_tried(ordered) < place_tried(storages);
  const uint64_t by_size = place_in_order(storages, alignment);
  if (!helps) return by_size;
  const uint64_t by_time = place_in_order(ordered, alignment);
  return by_time < by_size ? by_time : place_in_order(storages, alignment);
}

void plan_memory(RankPlan& plan) {
  const uint64_t alignment = plan.alignment;
  LifetimeFinder(plan).run();
  std::vector<Storage*> arena, reused, host, disk;
  for (Storage& s : plan.storages) {
    if (s.is_away()) {
      (s.tier == Tier::disk ? plan.disk_bytes : plan.host_bytes) += aligned(s.bytes, alignment);
    } else if (s.region == Region::state) {
      plan.state_bytes += aligned(s.bytes, alignment);
    } else if (s.region == Region::comm && s.reused) {
      reused.push_back(&s);
    } else if (s.region == Region::comm) {  // in use by an exchange while other storages are filled
      s.offset = plan.comm_bytes;
      plan.comm_bytes += aligned(s.whole(), alignment);
    } else if (s.bytes && !s.alive.empty()) {
      (s.region == Region::host ? host : s.region == Region::disk ? disk : arena).push_back(&s);
    }
  }
  plan.host_stash = lay_out(host, alignment), plan.disk_stash = lay_out(disk, alignment);
  plan.arena_bytes = lay_out(arena, alignment);
  uint64_t reused_bytes = lay_out(reused, alignment);
  for (Storage* s : reused) s->offset += plan.comm_bytes;
  plan.comm_bytes += reused_bytes;
}

}  // namespace orrery
