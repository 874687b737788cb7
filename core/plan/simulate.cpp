// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <boost/container_hash/hash.hpp>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "plan/timeline.h"

namespace orrery {
namespace {

// A transfer that was posted.
struct Travel {
  double posted;               // when
  size_t lane, number;         // its place in the lane
  double waited;               // how long compute had waited for lanes by then
  double begin = 0, end = -1;  // end < 0: it has not been carried out
};

// A communication lane of a timeline.
struct Lane {
  std::vector<size_t> posted;  // transfers, in order
  size_t next = 0, told = 0;   // how many have been carried out, and entered into `come`
  size_t felt = 0;             // how many have been taken from compute's speed
  double free = 0;             // the time that the lane has reached
  bool waits = false;          // it is in the list of a timeline that it waits for
};

// The state of a timeline in the simulation.
struct Lanes {
  const Timeline* plan = nullptr;
  size_t beat = 0;    // the next one
  double now = 0;     // the time that the compute lane has reached
  double waited = 0;  // of it, how long it has waited for lanes
  std::vector<Lane> lanes;
  std::vector<Travel> travels;  // by transfer
  // By meeting: when a lane was ready for it.
  std::unordered_map<std::array<int64_t, 5>, double, boost::hash<std::array<int64_t, 5>>> come;
  // Timelines and their lanes that wait until there is more in `come`.
  std::vector<std::pair<size_t, size_t>> waiting;
  Spent spent;
};

class Simulation {
 public:
  explicit Simulation(const std::vector<Timeline>& timelines) {
    for (const Timeline& t : timelines) {
      going_.push_back(lanes_.size());
      lanes_.emplace_back().plan = &t;
    }
  }

  std::vector<Spent> run() {
    while (!going_.empty()) {
      const size_t next = going_.back();
      going_.pop_back();
      while (go_on(next)) {
      }
    }
    std::vector<Spent> spent;
    double end = 0;
    for (const Lanes& l : lanes_) {
      if (l.beat < l.plan->beats.size())
        fail(ORR_FAILED, "the plan is wrong: its ranks wait for each other");
      end = std::max(end, l.now);
    }
    for (Lanes& l : lanes_) l.spent.step = end, spent.push_back(l.spent);
    return spent;
  }

 private:
  bool go_on(size_t me) {
    bool moved = false;
    for (size_t lane = 0; lane < lanes_[me].lanes.size(); ++lane)
      while (communicate(me, lane)) moved = true;
    while (compute(lanes_[me])) moved = true;
    return moved;
  }

  // Carries out the lane's next transfer that was posted, if all its peers are ready for it.
  bool communicate(size_t me, size_t number) {
    Lanes& l = lanes_[me];
    Lane& lane = l.lanes[number];
    if (lane.waits || lane.next == lane.posted.size()) return false;
    const size_t transfer = lane.posted[lane.next];
    const Transfer& t = l.plan->transfers[transfer];
    Travel& travel = l.travels[transfer];
    double begin = std::max(travel.posted, lane.free);
    if (lane.told == lane.next) ++lane.told, tell(l, t, begin);
    for (size_t peer : t.peers) {
      auto there = lanes_[peer].come.find(t.meeting);
      if (there == lanes_[peer].come.end()) {
        lanes_[peer].waiting.emplace_back(me, number);
        lane.waits = true;
        return false;
      }
      begin = std::max(begin, there->second);
    }
    travel.begin = begin, travel.end = lane.free = begin + t.seconds;
    ++lane.next;
    return true;
  }

  // Notes that a lane is ready for a transfer. Lanes that wait for it may go on.
  void tell(Lanes& l, const Transfer& t, double begin) {
    if (!t.peers.empty()) l.come.emplace(t.meeting, begin);
    for (const auto& [timeline, lane] : std::exchange(l.waiting, {})) {
      lanes_[timeline].lanes[lane].waits = false;
      going_.push_back(timeline);
    }
  }

  bool compute(Lanes& l) {
    if (l.beat == l.plan->beats.size()) return false;
    const Beat& beat = l.plan->beats[l.beat];
    if (beat.kind == Beat::compute) l.now += beat.seconds, l.spent.compute += beat.seconds;
    if (beat.kind == Beat::post) post(l, beat.transfer);
    if (beat.kind == Beat::wait) {
      if (l.travels[beat.transfer].end < 0) return false;
      slow_down(l, beat.transfer);
      wait(l, beat.transfer);
    }
    ++l.beat;
    return true;
  }

  static void post(Lanes& l, size_t transfer) {
    const size_t number = l.plan->transfers[transfer].lane;
    if (l.lanes.size() <= number) l.lanes.resize(number + 1);
    l.travels.push_back({l.now, number, l.lanes[number].posted.size(), l.waited});
    l.lanes[number].posted.push_back(transfer);
  }

  // The lane's transfers up to this one took their share of compute's speed while they travelled
  // beside it, which is while it did not wait: compute is so much later.
  static void slow_down(Lanes& l, size_t transfer) {
    Lane& lane = l.lanes[l.travels[transfer].lane];
    const size_t end = l.travels[transfer].number + 1;
    const double waited = l.waited;
    for (; lane.felt < end; ++lane.felt) {
      const size_t posted = lane.posted[lane.felt];
      const Transfer& t = l.plan->transfers[posted];
      const double beside = t.seconds - (waited - l.travels[posted].waited);
      const double lost = t.compute_share * std::max(0.0, beside);
      if (lost == 0) continue;
      l.now += lost, l.waited += lost, l.spent.exposed += lost, l.spent.exposed_by[t.axis] += lost;
    }
  }

  // The lane carries transfers out one after another: compute waits for the bytes of those that are
  // under way, and between them for the ranks of the next one.
  static void wait(Lanes& l, size_t transfer) {
    const Travel& last = l.travels[transfer];
    const std::vector<size_t>& posted = l.lanes[last.lane].posted;
    double until = last.end;
    for (size_t i = last.number + 1; i-- > 0 && until > l.now;) {
      const Travel& travel = l.travels[posted[i]];
      const std::string& axis = l.plan->transfers[posted[i]].axis;
      const double end = std::max(travel.end, l.now), begin = std::max(travel.begin, l.now);
      if (until > end) l.spent.blocked_by[l.plan->transfers[posted[i + 1]].axis] += until - end;
      if (end > begin) l.spent.exposed += end - begin, l.spent.exposed_by[axis] += end - begin;
      until = begin;
      if (i == 0 && until > l.now) l.spent.blocked_by[axis] += until - l.now;
    }
    l.waited += std::max(0.0, last.end - l.now);
    l.now = std::max(l.now, last.end);
  }

  std::vector<Lanes> lanes_;
  std::vector<size_t> going_;  // timelines that may be able to go on
};

}  // namespace

std::vector<Spent> simulate(const std::vector<Timeline>& timelines) {
  return Simulation(timelines).run();
}

}  // namespace orrery
