// SPDX-License-Identifier: Apache-2.0
//
// Offsets for everything, before the run: a storage lives from its first write to its last read in
// the schedule; the largest are placed first, each at the lowest offset free for all its life.
#include <algorithm>

#include "lower/lower.h"

namespace orrery {
namespace {

constexpr uint64_t kAlign = 64;

uint64_t aligned(uint64_t n) { return (n + kAlign - 1) / kAlign * kAlign; }

void touch(Storage& s, int step) {
  if (s.first < 0 || step < s.first) s.first = step;
  s.last = std::max(s.last, step);
}

void find_lives(RankPlan& plan) {
  auto at = [&](int storage) -> Storage& { return plan.storages[static_cast<size_t>(storage)]; };
  int end = static_cast<int>(plan.schedule.size());
  for (int step = 0; step < end; ++step) {
    const Step& s = plan.schedule[static_cast<size_t>(step)];
    if (s.kind != Step::launch) {
      touch(at(plan.buckets[static_cast<size_t>(s.index)].storage), step);
      continue;
    }
    const Launch& l = plan.launches[static_cast<size_t>(s.index)];
    for (const Place& x : l.in_at) touch(at(x.storage), step);
    for (const Place& x : l.out_at) touch(at(x.storage), step);
    if (l.workspace != kNone) touch(at(l.workspace), step);
  }
  const Program& p = plan.local.program;
  for (size_t v = 0; v < p.values().size(); ++v)  // what is given from outside is there from the start
    if (p.values()[v].producer == kNone && plan.places[v].storage != kNone) {
      Storage& s = at(plan.places[v].storage);
      if (s.last >= 0 && s.category == "input") s.first = 0;
    }
  for (auto& [name, id] : p.outputs())
    if (int storage = plan.places[static_cast<size_t>(id)].storage; storage != kNone)
      touch(at(storage), end);
}

uint64_t lay_out(std::vector<Storage*>& storages) {
  std::stable_sort(storages.begin(), storages.end(),
                   [](const Storage* a, const Storage* b) { return a->bytes > b->bytes; });
  std::vector<Storage*> placed;  // by offset
  uint64_t peak = 0;
  for (Storage* s : storages) {
    uint64_t offset = 0;
    for (const Storage* other : placed) {
      if (other->last < s->first || other->first > s->last) continue;
      if (offset + s->bytes <= other->offset) break;
      offset = std::max(offset, aligned(other->offset + other->bytes));
    }
    s->offset = offset;
    peak = std::max(peak, aligned(offset + s->bytes));
    placed.insert(std::upper_bound(placed.begin(), placed.end(), s,
                                   [](const Storage* a, const Storage* b) { return a->offset < b->offset; }),
                  s);
  }
  return peak;
}

}  // namespace

void plan_memory(RankPlan& plan) {
  find_lives(plan);
  std::vector<Storage*> arena;
  for (Storage& s : plan.storages) {
    if (s.region == Region::state) {
      plan.state_bytes += aligned(s.bytes);
    } else if (s.region == Region::comm) {  // buckets travel while others are filled: never shared
      s.offset = plan.comm_bytes;
      plan.comm_bytes += aligned(s.bytes);
    } else if (s.bytes && s.last >= 0) {
      arena.push_back(&s);
    }
  }
  plan.arena_bytes = lay_out(arena);
}

}  // namespace orrery
