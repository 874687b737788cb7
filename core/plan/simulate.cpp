// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <boost/container_hash/hash.hpp>
#include <functional>
#include <queue>
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
  double waited, computed;     // how long compute had waited for lanes and worked by then
  double begin = 0, end = -1;  // end < 0: it has not been carried out
  double beside = 0;           // of that time, its part among the transfers that slowed compute
};

// A communication lane of a timeline. Its next transfer waits until it is posted (idle) and for the
// peers (ready), then for the time of its begin (set), travels, and waits until it has arrived at
// all of its ranks (arrived).
struct Lane {
  enum State : int8_t { idle, ready, set, travels, arrived } state = idle;
  bool waits = false;          // it is in the list of a timeline that it waits for
  std::vector<size_t> posted;  // transfers, in order
  size_t next = 0;             // how many have been carried out
  size_t felt = 0;             // how many have been taken from compute's speed
  size_t heard = 0;            // of the next one's peers, how many have the time that it waits for
  double free = 0;             // the time that the lane has reached
  // Of the transfer that travels: the seconds that are left at full speed, the part of it at which
  // it goes since a time, and when it arrives so.
  double left = 0, speed = 0, since = 0, due = 0;
};

// When a lane was ready for a transfer, and when this had arrived.
struct Met {
  double ready = 0, arrived = -1;
};

// The state of a timeline in the simulation.
struct Lanes {
  const Timeline* plan = nullptr;
  size_t beat = 0;    // the next one
  double now = 0;     // the time that the compute lane has reached
  double waited = 0;  // of it, how long it has waited for lanes
  std::vector<Lane> lanes;
  std::vector<Travel> travels;  // by transfer
  std::vector<size_t> beside;   // other timelines that share a network card with this one
  std::unordered_map<std::array<int64_t, 5>, Met, boost::hash<std::array<int64_t, 5>>> met;
  // Timelines and their lanes that wait until there is more in `met`.
  std::vector<std::pair<size_t, size_t>> waiting;
  Spent spent;

  const Transfer& next(const Lane& lane) const { return plan->transfers[lane.posted[lane.next]]; }
  // How much of a link the transfers take that travel now; above 1 they slow each other down.
  double load(size_t link) const {
    double sum = 0;
    for (const Lane& lane : lanes)
      if (lane.state == Lane::travels) sum += next(lane).use[link];
    return sum;
  }
};

// A lane's next transfer begins, or arrives if its speed has not changed meanwhile.
struct Event {
  double time;
  bool begins;  // of two at one time, the arrival comes first
  size_t timeline, lane;
  auto operator<=>(const Event&) const = default;
};

class Simulation {
 public:
  explicit Simulation(const std::vector<Timeline>& timelines) {
    for (const Timeline& t : timelines) {
      going_.push_back(lanes_.size());
      lanes_.emplace_back().plan = &t;
      lanes_.back().met.reserve(t.transfers.size());
      lanes_.back().travels.reserve(t.transfers.size());
    }
    for (size_t me = 0; me < lanes_.size(); ++me)
      for (auto& [other, ranks] : timelines[me].card)
        if (other != me) lanes_[other].beside.push_back(me);
  }

  std::vector<Spent> run() {
    for (go_on_now(); !events_.empty(); go_on_now()) {
      const Event next = events_.top();
      events_.pop();
      carry_out(next);
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
  // Lets all timelines go on as far as they can without waiting for an event.
  void go_on_now() {
    while (!going_.empty()) {
      const size_t next = going_.back();
      going_.pop_back();
      while (go_on(next)) {
      }
    }
  }

  bool go_on(size_t me) {
    bool moved = false;
    for (size_t lane = 0; lane < lanes_[me].lanes.size(); ++lane)
      while (communicate(me, lane)) moved = true;
    while (compute(lanes_[me])) moved = true;
    return moved;
  }

  // Takes the lane's next transfer to its next state, if that waits for no event.
  bool communicate(size_t me, size_t number) {
    Lanes& l = lanes_[me];
    Lane& lane = l.lanes[number];
    if (lane.waits || lane.next == lane.posted.size()) return false;
    Travel& travel = l.travels[lane.posted[lane.next]];
    if (lane.state == Lane::idle) {
      lane.state = Lane::ready;
      tell(me, lane, &Met::ready, travel.begin = std::max(travel.posted, lane.free));
    }
    if (lane.state == Lane::ready && last_of(me, number, &Met::ready, travel.begin)) {
      lane.state = Lane::set;
      events_.push({travel.begin, true, me, number});
    }
    if (lane.state != Lane::arrived || !last_of(me, number, &Met::arrived, lane.free)) return false;
    travel.end = lane.free;
    lane.state = Lane::idle, ++lane.next;
    return true;
  }

  // Whether the lane's next transfer has a time on all its ranks; raises `time` to their last one.
  bool last_of(size_t me, size_t number, double Met::*which, double& time) {
    Lane& lane = lanes_[me].lanes[number];
    const Transfer& t = lanes_[me].next(lane);
    for (; lane.heard < t.peers.size(); ++lane.heard) {
      const size_t peer = t.peers[lane.heard];
      auto there = lanes_[peer].met.find(t.meeting);
      if (there == lanes_[peer].met.end() || there->second.*which < 0) {
        lanes_[peer].waiting.emplace_back(me, number);
        lane.waits = true;
        return false;
      }
      time = std::max(time, there->second.*which);
    }
    lane.heard = 0;
    return true;
  }

  // Notes a time of the lane's next transfer. Lanes that wait for it may go on.
  void tell(size_t me, const Lane& lane, double Met::*which, double time) {
    Lanes& l = lanes_[me];
    if (const Transfer& t = l.next(lane); !t.peers.empty()) l.met[t.meeting].*which = time;
    for (const auto& [timeline, waits] : std::exchange(l.waiting, {})) {
      lanes_[timeline].lanes[waits].waits = false;
      going_.push_back(timeline);
    }
  }

  void carry_out(const Event& event) {
    const size_t me = event.timeline;
    Lane& lane = lanes_[me].lanes[event.lane];
    if (!event.begins && (lane.state != Lane::travels || lane.due != event.time)) return;
    settle(me, event.time);
    if (event.begins) {
      lane.state = Lane::travels;
      lane.left = lanes_[me].next(lane).seconds, lane.speed = 0, lane.since = event.time;
    } else {
      lane.state = Lane::arrived, lane.free = event.time;
      tell(me, lane, &Met::arrived, event.time);
      going_.push_back(me);
    }
    share_links(me, event.time);
    for (size_t other : lanes_[me].beside)
      settle(other, event.time), share_links(other, event.time);
  }

  // Brings the transfers that travel to this time.
  void settle(size_t me, double now) {
    Lanes& l = lanes_[me];
    double slowing = 0;  // transfers that slow compute down
    for (const Lane& lane : l.lanes)
      slowing += lane.state == Lane::travels && l.next(lane).compute_share > 0;
    for (Lane& lane : l.lanes) {
      if (lane.state != Lane::travels) continue;
      const double passed = now - std::exchange(lane.since, now);
      lane.left -= passed * lane.speed;
      if (l.next(lane).compute_share > 0)
        l.travels[lane.posted[lane.next]].beside += passed / slowing;
    }
  }

  // The speed of transfers that travel is as the fullest of their links allows.
  void share_links(size_t me, double now) {
    Lanes& l = lanes_[me];
    std::array<double, kLinks> load{};
    for (size_t link = 0; link < kLinks; ++link) load[link] = link_load(me, link);
    for (size_t i = 0; i < l.lanes.size(); ++i) {
      Lane& lane = l.lanes[i];
      if (lane.state != Lane::travels) continue;
      double most = 1;
      for (size_t link = 0; link < kLinks; ++link)
        if (l.next(lane).use[link] > 0) most = std::max(most, load[link]);
      if (std::exchange(lane.speed, 1 / most) == 1 / most) continue;
      lane.due = now + std::max(lane.left, 0.0) * most;
      events_.push({lane.due, false, me, i});
    }
  }

  // That of all ranks that share the link with the timeline's.
  double link_load(size_t me, size_t link) const {
    const auto& card = lanes_[me].plan->card;
    if (card.empty() || link < kBetween) return lanes_[me].load(link);
    double sum = 0;
    for (auto& [other, ranks] : card) sum += ranks * lanes_[other].load(link);
    return sum;
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
    l.travels.push_back({l.now, number, l.lanes[number].posted.size(), l.waited, l.spent.compute});
    l.lanes[number].posted.push_back(transfer);
  }

  // The lane's transfers up to this one took their share of compute's speed while they travelled
  // beside it, which is while it did not wait: compute is so much later. Transfers that travel at
  // the same time take it together.
  static void slow_down(Lanes& l, size_t transfer) {
    Lane& lane = l.lanes[l.travels[transfer].lane];
    const size_t end = l.travels[transfer].number + 1;
    const double waited = l.waited;
    for (; lane.felt < end; ++lane.felt) {
      const size_t posted = lane.posted[lane.felt];
      const Transfer& t = l.plan->transfers[posted];
      const Travel& travel = l.travels[posted];
      const double took = travel.end - travel.begin;
      const double beside =
          std::min(took - (waited - travel.waited), l.spent.compute - travel.computed);
      if (t.compute_share == 0 || beside <= 0) continue;
      const double lost = t.compute_share * beside * travel.beside / took;
      l.now += lost, expose(l.spent, t, lost);
    }
  }

  static void expose(Spent& spent, const Transfer& t, double seconds) {
    spent.exposed += seconds;
    (t.copy ? spent.offload_by : spent.exposed_by)[t.axis] += seconds;
  }

  // The lane carries transfers out one after another: compute waits for the bytes of those that are
  // under way, and between them for the ranks of the next one.
  static void wait(Lanes& l, size_t transfer) {
    const Travel& last = l.travels[transfer];
    const std::vector<size_t>& posted = l.lanes[last.lane].posted;
    double until = last.end;
    for (size_t i = last.number + 1; i-- > 0 && until > l.now;) {
      const Travel& travel = l.travels[posted[i]];
      const Transfer& t = l.plan->transfers[posted[i]];
      const double end = std::max(travel.end, l.now), begin = std::max(travel.begin, l.now);
      if (until > end) l.spent.blocked_by[l.plan->transfers[posted[i + 1]].axis] += until - end;
      if (end > begin) expose(l.spent, t, end - begin);
      until = begin;
      if (i == 0 && until > l.now) l.spent.blocked_by[t.axis] += until - l.now;
    }
    l.waited += std::max(0.0, last.end - l.now);
    l.now = std::max(l.now, last.end);
  }

  std::vector<Lanes> lanes_;
  std::vector<size_t> going_;  // timelines that may be able to go on
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
};

}  // namespace

std::vector<Spent> simulate(const std::vector<Timeline>& timelines) {
  return Simulation(timelines).run();
}

}  // namespace orrery
