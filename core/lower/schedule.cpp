// SPDX-License-Identifier: Apache-2.0
//
// Orders the lanes. Compute follows the program; a bucket is posted as soon as its last member is
// complete; the update is reordered so that what needs only early buckets runs while later ones
// still travel. Hazards on storages keep their order.
#include <algorithm>
#include <map>

#include "lower/lower.h"

namespace orrery {
namespace {

Segment segment_of(const Launch& l) {
  return l.op.phase == Phase::forward ? Segment::forward
         : l.op.phase == Phase::backward ? Segment::backward
                                         : Segment::update;
}

// For each update launch the last bucket that must be back before it may run, -1 for none.
std::vector<int> needed_buckets(const RankPlan& plan, const std::vector<int>& update) {
  std::map<int, int> written, touched;  // storage -> need of its last writer / of any user
  for (size_t b = 0; b < plan.buckets.size(); ++b)
    written[plan.buckets[b].storage] = static_cast<int>(b);
  auto level = [](const std::map<int, int>& m, int storage) {
    auto at = m.find(storage);
    return at == m.end() ? -1 : at->second;
  };
  std::vector<int> need;
  for (int i : update) {
    const Launch& l = plan.launches[static_cast<size_t>(i)];
    int n = -1;
    for (const Place& x : l.in_at) n = std::max(n, level(written, x.storage));
    for (const Place& x : l.out_at)
      n = std::max({n, level(touched, x.storage), level(written, x.storage)});
    for (const Place& x : l.in_at) touched[x.storage] = std::max(level(touched, x.storage), n);
    for (const Place& x : l.out_at) written[x.storage] = std::max(level(written, x.storage), n);
    need.push_back(n);
  }
  return need;
}

}  // namespace

void make_schedule(RankPlan& plan) {
  std::vector<int> early, update;
  for (size_t i = 0; i < plan.launches.size(); ++i)
    (segment_of(plan.launches[i]) == Segment::update ? update : early).push_back(static_cast<int>(i));
  std::map<int, int> last_write;
  for (int i : early)
    for (const Place& x : plan.launches[static_cast<size_t>(i)].out_at) last_write[x.storage] = i;

  auto& schedule = plan.schedule;
  std::vector<int> posted;
  for (int i : early) {
    Segment segment = segment_of(plan.launches[static_cast<size_t>(i)]);
    schedule.push_back({Step::launch, i, segment});
    for (size_t b = 0; b < plan.buckets.size(); ++b) {
      auto last = last_write.find(plan.buckets[b].storage);
      if (last == last_write.end() || last->second != i) continue;
      plan.buckets[b].ready = static_cast<int>(schedule.size()) - 1;
      schedule.push_back({Step::post, static_cast<int>(b), segment});
      posted.push_back(static_cast<int>(b));
    }
  }
  std::vector<int> need = needed_buckets(plan, update), order(update.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return need[static_cast<size_t>(a)] < need[static_cast<size_t>(b)];
  });
  size_t waited = 0;
  auto wait_until = [&](int bucket) {
    while (waited < posted.size() && posted[waited] <= bucket)
      schedule.push_back({Step::wait, posted[waited++], Segment::update});
  };
  for (int k : order) {
    wait_until(need[static_cast<size_t>(k)]);
    schedule.push_back({Step::launch, update[static_cast<size_t>(k)], Segment::update});
  }
  wait_until(static_cast<int>(plan.buckets.size()));
}

}  // namespace orrery
