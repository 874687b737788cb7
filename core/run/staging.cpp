// SPDX-License-Identifier: Apache-2.0
#include "run/staging.h"

#include <algorithm>
#include <map>

#include "lower/lower.h"

namespace orrery {
namespace {

using Spans = std::vector<std::pair<int, int>>;

// By exchange: the spans of steps from each post to its wait.
std::vector<Spans> flights(const RankPlan& plan) {
  std::vector<Spans> found(plan.exchanges.size());
  std::map<std::pair<int, int>, int> posted;  // exchange, microbatch
  for (size_t i = 0; i < plan.schedule.size(); ++i) {
    const Step& s = plan.schedule[i];
    if (s.kind == Step::post) posted[{s.index, s.microbatch}] = static_cast<int>(i);
    if (s.kind == Step::wait)
      found[static_cast<size_t>(s.index)].push_back(
          {posted.at({s.index, s.microbatch}), static_cast<int>(i)});
  }
  for (Spans& spans : found) std::sort(spans.begin(), spans.end());
  return found;
}

class Stager {
 public:
  explicit Stager(const RankPlan& plan) : plan_(plan), flights_(flights(plan)) {
    made_.shifts.resize(plan.exchanges.size());
  }

  StagingPlan run(const std::vector<StagedBytes>& bytes) {
    for (size_t i = 0; i < bytes.size(); ++i) add(i, bytes[i]);
    std::vector<Storage*> storages;
    for (Area& a : areas_) storages.push_back(&a.storage);
    made_.bytes = lay_out(storages, plan_.alignment);
    for (const Area& a : areas_) {
      const uint64_t shift = a.storage.offset - a.first;
      if (a.send) made_.shifts[a.exchange].send = shift;
      if (a.recv) made_.shifts[a.exchange].recv = shift;
    }
    return made_;
  }

 private:
  struct Area {
    Storage storage;
    uint64_t first = 0;  // the offset in the plan's storage that it begins at
    size_t exchange = 0;
    bool send = false, recv = false;
  };

  void add(size_t i, const StagedBytes& bytes) {
    const Exchange& e = plan_.exchanges[i];
    const uint64_t send_end = e.send.offset + bytes.send, recv_end = e.recv.offset + bytes.recv;
    if (bytes.send && bytes.recv && e.send.storage == e.recv.storage)
      return push(i, e.send.storage, std::min(e.send.offset, e.recv.offset),
                  std::max(send_end, recv_end), true, true);
    if (bytes.send) push(i, e.send.storage, e.send.offset, send_end, true, false);
    if (bytes.recv) push(i, e.recv.storage, e.recv.offset, recv_end, false, true);
  }

  void push(size_t exchange, int storage, uint64_t first, uint64_t end, bool send, bool recv) {
    const Storage& s = plan_.storage(storage);
    Spans alive = flights_[exchange];
    if (alive.empty()) return;
    if (s.by == Slots::ring && s.slots > 1) {  // several microbatches may be under way together
      first = 0, end = s.whole();
      for (auto& [from, to] : alive) alive.front().second = std::max(alive.front().second, to);
      alive.resize(1);
    }
    Area a;
    a.storage.bytes = end - first, a.storage.alive = alive;
    a.first = first, a.exchange = exchange, a.send = send, a.recv = recv;
    areas_.push_back(std::move(a));
  }

  const RankPlan& plan_;
  std::vector<Spans> flights_;
  std::vector<Area> areas_;
  StagingPlan made_;
};

}  // namespace

StagingPlan plan_staging(const RankPlan& plan, const std::vector<StagedBytes>& bytes) {
  return Stager(plan).run(bytes);
}

}  // namespace orrery
