// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "base/error.h"
#include "run/timeline.h"

namespace orrery {
namespace {

struct Travel {
  double begin = -1, end = -1;  // begin < 0: has not begun
};

// Where a timeline is.
struct Lanes {
  const Timeline* plan;
  size_t beat = 0, transfer = 0;  // the next of each lane; transfers were posted in order
  double now = 0,
         free = 0;  // when compute, and the communication lane, have done what is behind them
  std::vector<double> posted;  // by transfer
  std::vector<Travel> travels;
  std::map<std::array<int64_t, 5>, double> come;  // when the lane was ready for each meeting
  Spent spent;
};

class Simulation {
 public:
  explicit Simulation(const std::vector<Timeline>& timelines) {
    for (const Timeline& t : timelines) lanes_.push_back({&t, 0, 0, 0, 0, {}, {}, {}, {}});
  }

  std::vector<Spent> run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (Lanes& l : lanes_)
        while (communicate(l) || compute(l)) moved = true;
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
  // The next transfer that was posted, if all peers have come to it.
  bool communicate(Lanes& l) {
    if (l.transfer == l.posted.size()) return false;
    const Transfer& t = l.plan->transfers[l.transfer];
    double begin = std::max(l.posted[l.transfer], l.free);
    if (!t.peers.empty()) l.come.emplace(t.meeting, begin);
    for (size_t peer : t.peers) {
      auto there = lanes_[peer].come.find(t.meeting);
      if (there == lanes_[peer].come.end()) return false;
      begin = std::max(begin, there->second);
    }
    l.free = begin + t.seconds;
    l.travels.push_back({begin, l.free});
    ++l.transfer;
    return true;
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
};

}  // namespace

std::vector<Spent> simulate(const std::vector<Timeline>& timelines) {
  return Simulation(timelines).run();
}

}  // namespace orrery
