// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <boost/container_hash/hash.hpp>
#include <unordered_map>

#include "base/error.h"
#include "plan/timeline.h"

namespace orrery {
namespace {

struct Travel {
  double begin = -1, end = -1;  // begin < 0: has not begun
};

// The state of a timeline in the simulation.
struct Lanes {
  const Timeline* plan = nullptr;
  size_t beat = 0, transfer = 0;  // the next one of the compute and of the communication lane
  double now = 0, free = 0;    // the time that the compute and the communication lane have reached
  std::vector<double> posted;  // by transfer: when it was posted
  std::vector<Travel> travels;
  // By meeting: when this communication lane was ready for it.
  std::unordered_map<std::array<int64_t, 5>, double, boost::hash<std::array<int64_t, 5>>> come;
  size_t told = 0;              // how many transfers have been entered into `come`
  std::vector<size_t> waiting;  // timelines that wait until there is more in `come`
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
      while (communicate(next) || compute(lanes_[next])) {
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
  // Carries out the next transfer that was posted, if all its peers are ready for it.
  bool communicate(size_t me) {
    Lanes& l = lanes_[me];
    if (l.transfer == l.posted.size()) return false;
    const Transfer& t = l.plan->transfers[l.transfer];
    double begin = std::max(l.posted[l.transfer], l.free);
    if (l.told == l.transfer) tell(l, t, begin);
    for (size_t peer : t.peers) {
      auto there = lanes_[peer].come.find(t.meeting);
      if (there == lanes_[peer].come.end()) {
        std::vector<size_t>& waiting = lanes_[peer].waiting;
        if (waiting.empty() || waiting.back() != me) waiting.push_back(me);
        return false;
      }
      begin = std::max(begin, there->second);
    }
    l.free = begin + t.seconds;
    l.travels.push_back({begin, l.free});
    ++l.transfer;
    return true;
  }

  // Notes that the lane is ready for a transfer. Timelines that wait for it may go on.
  void tell(Lanes& l, const Transfer& t, double begin) {
    ++l.told;
    if (!t.peers.empty()) l.come.emplace(t.meeting, begin);
    going_.insert(going_.end(), l.waiting.begin(), l.waiting.end());
    l.waiting.clear();
  }

  bool compute(Lanes& l) {
    if (l.beat == l.plan->beats.size()) return false;
    const Beat& beat = l.plan->beats[l.beat];
    if (beat.kind == Beat::compute) l.now += beat.seconds, l.spent.compute += beat.seconds;
    if (beat.kind == Beat::post) l.posted.push_back(l.now);
    if (beat.kind == Beat::wait) {
      if (beat.transfer >= l.travels.size()) return false;
      wait(l, beat.transfer);
    }
    ++l.beat;
    return true;
  }

  static void wait(Lanes& l, size_t transfer) {
    const double end = l.travels[transfer].end;
    for (size_t i = transfer + 1; i-- > 0 && l.travels[i].end > l.now;)
      l.spent.exposed += l.travels[i].end - std::max(l.travels[i].begin, l.now);
    l.now = std::max(l.now, end);
  }

  std::vector<Lanes> lanes_;
  std::vector<size_t> going_;  // timelines that may be able to go on
};

}  // namespace

std::vector<Spent> simulate(const std::vector<Timeline>& timelines) {
  return Simulation(timelines).run();
}

}  // namespace orrery
