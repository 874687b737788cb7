// SPDX-License-Identifier: Apache-2.0
//
// Gives steps access to states of other tiers through windows (Ren et al., "ZeRO-Offload", 2021;
// Rajbhandari et al., "ZeRO-Infinity", SC'21). A window is a storage of the arena that lives from
// the copy that fills it to the copy that writes it back. Windows are grouped in units, in the
// order of their use. While steps use one unit, the next is filled and the one before is written
// back, so at most three are alive.
#include <algorithm>
#include <map>
#include <utility>

#include "lower/lower.h"
#include "lower/schedule/touched.h"

namespace orrery {
namespace {

// A unit has at least so many bytes: each unit costs a wait, so smaller windows are moved together.
constexpr uint64_t kUnitBytes = 64 << 10;

// The use of one storage in one part of the step.
struct Visit {
  int storage = kNone, window = kNone;
  size_t first = 0, last = 0;  // steps
  Segment part = Segment::update;
  bool read = false, written = false;
};

struct Unit {
  std::vector<Visit> visits;
  // The step before which the copies in are posted, and the one after which it is written back.
  size_t fetch = 0, store = 0;
};

class Streamer {
 public:
  explicit Streamer(RankPlan& plan) : plan_(plan) {}

  void run() {
    find_visits();
    if (visits_.empty()) return;
    make_windows();
    make_units();
    insert_copies();
  }

 private:
  const Step& step(size_t i) const { return plan_.schedule[i]; }

  void find_visits() {
    for (size_t i = 0; i < plan_.schedule.size(); ++i) {
      if (step(i).kind == Step::wait) continue;
      each_touched(
          plan_, step(i),
          [&](int s) {
            if (Visit* v = visit(s, i)) v->read = true;
          },
          [&](int s) {
            if (Visit* v = visit(s, i)) v->written = true;
          });
    }
  }

  // The part of the step that a visit belongs to. Where microbatches run one by one, forward and
  // backward run again and again, so states that they use stay for all of it.
  Segment part_of(const Step& s) const {
    if (s.segment == Segment::update) return s.segment;
    return plan_.local.microbatches.one_by_one ? Segment::prologue : s.segment;
  }

  // Notes that step i uses the storage; null if it is in device memory.
  Visit* visit(int storage, size_t i) {
    if (!plan_.storage(storage).is_away()) return nullptr;
    const Segment part = part_of(step(i));
    auto [at, fresh] = index_.try_emplace({storage, part}, visits_.size());
    if (fresh) visits_.push_back({storage, kNone, i, i, part});
    Visit& v = visits_[at->second];
    v.last = i;
    return &v;
  }

  void make_windows() {
    for (Visit& v : visits_) {
      Storage window;
      window.bytes = plan_.storage(v.storage).bytes, window.category = "window";
      v.window = plan_.add(std::move(window));
    }
    for (const Step& s : plan_.schedule) {
      if (s.kind == Step::wait) continue;
      auto move = [&](Place& x) {
        if (auto at = index_.find({x.storage, part_of(s)}); at != index_.end())
          x.storage = visits_[at->second].window;
      };
      each_place(plan_, s, move, move);
    }
  }

  // Groups visits, which are in the order of their first steps. The first unit of the update is
  // filled while the update waits for its gradients.
  void make_units() {
    uint64_t bytes = 0;
    for (const Visit& v : visits_) {
      const Visit* before = units_.empty() ? nullptr : &units_.back().visits.back();
      const bool other_part = !before || before->part != v.part;
      if (other_part || (bytes >= kUnitBytes && before->first != v.first)) {
        size_t ahead = units_.empty() ? v.first : units_.back().visits.front().first;
        if (other_part && v.part == Segment::update) ahead = update_begin();
        units_.push_back({{}, ahead, 0});
        bytes = 0;
      }
      units_.back().visits.push_back(v);
      units_.back().store = std::max(units_.back().store, v.last);
      bytes += plan_.storage(v.storage).bytes;
    }
  }

  size_t update_begin() const {
    auto at = std::find_if(plan_.schedule.begin(), plan_.schedule.end(),
                           [](const Step& s) { return s.segment == Segment::update; });
    return static_cast<size_t>(at - plan_.schedule.begin());
  }

  void insert_copies() {
    std::multimap<size_t, const Unit*> fetched, stored;  // by step
    for (const Unit& u : units_) fetched.emplace(u.fetch, &u), stored.emplace(u.store, &u);
    const std::vector<Step> old = std::exchange(plan_.schedule, {});
    for (size_t i = 0; i < old.size(); ++i) {
      for (auto [at, end] = fetched.equal_range(i); at != end; ++at) fetch(*at->second);
      plan_.schedule.push_back(old[i]);
      for (auto [at, end] = stored.equal_range(i); at != end; ++at) store(*at->second);
    }
  }

  void fetch(const Unit& unit) {
    for (const Visit& v : unit.visits)
      if (v.read) plan_.schedule.push_back(post(v, v.storage, v.window));
  }

  // Writes a unit back. The one before is awaited first, so that its windows end.
  void store(const Unit& unit) {
    for (Step s : std::exchange(storing_, {})) s.kind = Step::wait, plan_.schedule.push_back(s);
    for (const Visit& v : unit.visits)
      if (v.written) storing_.push_back(post(v, v.window, v.storage));
    plan_.schedule.insert(plan_.schedule.end(), storing_.begin(), storing_.end());
  }

  Step post(const Visit& v, int from, int to) {
    const Storage& away = plan_.storage(v.storage);
    const State& state = *away.state;
    const int copy =
        add_copy(plan_, state.name, from, to, away.tier, to == v.storage, state.type.dtype);
    plan_.exchanges.back().where = state.site.line;
    return {Step::post, v.part, copy};
  }

  RankPlan& plan_;
  std::vector<Visit> visits_;
  std::map<std::pair<int, Segment>, size_t> index_;  // of visits, by storage and part
  std::vector<Unit> units_;
  std::vector<Step> storing_;
};

}  // namespace

void stream_states(RankPlan& plan) { Streamer(plan).run(); }

}  // namespace orrery
