// SPDX-License-Identifier: Apache-2.0
//
// Copies activations that wait for backward to another tier. A storage is copied out after the last
// step of forward that uses it, and back, into a new storage, before the first step of backward
// that does; the arena holds neither meanwhile. The copy back is posted when backward begins to use
// the storage before it; one copy out is under way at a time.
#include <algorithm>
#include <map>
#include <utility>

#include "lower/lower.h"
#include "lower/schedule/touched.h"

namespace orrery {
namespace {

constexpr uint64_t kLeast = 4 << 10;  // bytes; smaller storages are not worth two copies

struct Stashed {
  int storage = kNone, away = kNone, back = kNone;
  int out = kNone, in = kNone;  // exchanges
};

// The steps of one microbatch between which a storage waits.
struct Wait {
  size_t last_forward = 0, first_backward = 0;
  bool forward = false, backward = false;
};

class Stasher {
 public:
  explicit Stasher(RankPlan& plan) : plan_(plan) {}

  void run() {
    mark_tiers();
    find_waits();
    drop_others();
    if (waits_.empty()) return;
    for (auto& [key, wait] : waits_) stash(key.first);
    read_back();
    insert_copies();
  }

 private:
  using Key = std::pair<int, int>;  // storage, microbatch

  static bool is_backward(const Step& s) {
    return s.segment == Segment::backward || s.segment == Segment::weight;
  }

  void mark_tiers() {
    const std::vector<Value>& values = plan_.local.program.values();
    for (size_t v = 0; v < values.size(); ++v)
      if (int s = plan_.places[v].storage;
          s != kNone && values[v].tier != Tier::device && !values[v].state)
        if (plan_.storage(s).category == "activation") plan_.storage(s).tier = values[v].tier;
  }

  bool candidate(int storage) const {
    const Storage& s = plan_.storage(storage);
    return s.region == Region::arena && s.tier != Tier::device && s.by != Slots::stack &&
           s.bytes >= kLeast;
  }

  void find_waits() {
    for (size_t i = 0; i < plan_.schedule.size(); ++i) {
      const Step& s = plan_.schedule[i];
      if (s.kind == Step::wait) continue;
      auto read = [&](int x) { touch(x, s, i); };
      auto write = [&](int x) {
        touch(x, s, i);
        if (s.segment != Segment::forward) needed_[x] = true;
      };
      each_touched(plan_, s, read, write);
    }
    for (auto& [name, id] : plan_.local.program.outputs())
      needed_[plan_.places[static_cast<size_t>(id)].storage] = true;
  }

  void touch(int storage, const Step& s, size_t i) {
    if (!candidate(storage)) return;
    Wait& w = waits_[{storage, plan_.storage(storage).by == Slots::ring ? s.microbatch : 0}];
    if (s.segment == Segment::forward) {
      w.forward = true, w.last_forward = i;
    } else if (is_backward(s)) {
      if (!w.backward) w.first_backward = i;
      w.backward = true;
    } else {
      needed_[storage] = true;
    }
  }

  // Storages that others than forward write, or that do not wait for backward, are not copied.
  void drop_others() {
    for (auto& [key, w] : waits_)
      if (!w.forward || !w.backward || w.last_forward > w.first_backward) needed_[key.first] = true;
    std::erase_if(waits_, [&](auto& entry) { return needed_.count(entry.first.first) > 0; });
  }

  void stash(int storage) {
    if (stashed_.count(storage)) return;
    Storage away;
    const Tier tier = plan_.storage(storage).tier;
    away.bytes = plan_.storage(storage).bytes, away.by = plan_.storage(storage).by;
    away.category = "activation";
    Storage back = away;
    away.region = tier == Tier::disk ? Region::disk : Region::host;
    Stashed made{storage};
    made.away = plan_.add(away), made.back = plan_.add(back);
    made.out = add_copy(plan_, "stash", storage, made.away, tier, true);
    made.in = add_copy(plan_, "return", made.away, made.back, tier, false);
    stashed_[storage] = made;
  }

  void read_back() {
    for (const Step& s : plan_.schedule) {
      if (s.kind == Step::wait || !is_backward(s)) continue;
      auto move = [&](Place& x) {
        if (auto at = stashed_.find(x.storage); at != stashed_.end()) x.storage = at->second.back;
      };
      each_place(plan_, s, move, move);
    }
  }

  void insert_copies() {
    std::multimap<size_t, Key> out, in, in_order;
    for (auto& [key, w] : waits_)
      out.emplace(w.last_forward, key), in_order.emplace(w.first_backward, key);
    size_t ahead = 0;  // when backward first uses the storage before; but not before its copy out
    for (auto& [first, key] : in_order) {
      in.emplace(std::max(std::min(ahead, first), waits_.at(key).last_forward + 1), key);
      ahead = first;
    }
    const std::vector<Step> old = std::exchange(plan_.schedule, {});
    std::vector<Step> going;
    for (size_t i = 0; i < old.size(); ++i) {
      for (auto [at, end] = in.equal_range(i); at != end; ++at)
        plan_.schedule.push_back(post(stashed_.at(at->second.first).in, at->second, old[i]));
      plan_.schedule.push_back(old[i]);
      for (auto [at, end] = out.equal_range(i); at != end; ++at) {
        for (Step s : std::exchange(going, {})) s.kind = Step::wait, plan_.schedule.push_back(s);
        going.push_back(post(stashed_.at(at->second.first).out, at->second, old[i]));
        plan_.schedule.push_back(going.back());
      }
    }
  }

  static Step post(int exchange, const Key& key, const Step& near) {
    return {Step::post, near.segment, exchange, near.chunk, key.second};
  }

  RankPlan& plan_;
  std::map<Key, Wait> waits_;
  std::map<int, bool> needed_;  // storages that are not copied
  std::map<int, Stashed> stashed_;
};

}  // namespace

void stash_activations(RankPlan& plan) { Stasher(plan).run(); }

}  // namespace orrery
