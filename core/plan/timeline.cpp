// SPDX-License-Identifier: Apache-2.0
#include "plan/timeline.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "lower/channel.h"
#include "plan/traffic.h"

namespace orrery {
namespace {

class Builder {
 public:
  Builder(const RankPlan& plan, const RankKinds& kinds, const Machine& machine)
      : plan_(plan), kinds_(kinds), machine_(machine) {
    for (const Launch& l : plan.launches) launch_seconds_.push_back(machine.seconds(l));
    for (const Exchange& e : plan.exchanges)
      transfers_.push_back(e.is_copy() ? copy(e) : e.axis.empty() ? alone() : transfer(e));
  }

  Timeline run() {
    const size_t calls = static_cast<size_t>(plan_.local.microbatches.calls());
    std::vector<size_t> posted(plan_.exchanges.size() * calls);
    auto at = [&](const Step& s) -> size_t& {
      return posted[static_cast<size_t>(s.index) * calls + static_cast<size_t>(s.microbatch)];
    };
    for (const Step& s : plan_.schedule) {
      if (s.kind == Step::launch) {
        compute(launch_seconds_[static_cast<size_t>(s.index)]);
      } else if (s.kind == Step::post) {
        at(s) = made_.transfers.size();
        made_.beats.push_back({Beat::post, 0, made_.transfers.size()});
        made_.transfers.push_back(met(s));
      } else {
        made_.beats.push_back({Beat::wait, 0, at(s)});
      }
    }
    for (int rank : machine_.share_card(plan_.rank, plan_.mesh.world))
      ++made_.card[kinds_.kind_of(rank)];
    return std::move(made_);
  }

 private:
  void compute(double seconds) {
    if (made_.beats.empty() || made_.beats.back().kind != Beat::compute)
      made_.beats.push_back({Beat::compute});
    made_.beats.back().seconds += seconds;
  }

  // What one rank completes by itself takes no time.
  Transfer alone() { return {0, {}, {}, lane_of({})}; }

  // Copies between memory tiers have a lane of their own.
  Transfer copy(const Exchange& e) {
    const Link& link = machine_.link_of(e);
    Transfer t{link.seconds(1, static_cast<double>(e.bytes())), {}, {}, lane_of({{}, kNone})};
    t.axis = tier_name(e.tier), t.compute_share = link.compute, t.copy = true;
    return t;
  }

  size_t lane_of(const std::pair<Mesh::Shape, int>& channel) {
    return lanes_.try_emplace(channel, lanes_.size()).first->second;
  }

  Transfer transfer(const Exchange& e) {
    std::set<size_t> peers;
    auto add = [&](int at) {
      peers.insert(kinds_.kind_of(plan_.mesh.peer(e.axis, at, plan_.rank)));
    };
    if (is_message(e)) add(e.root_or_peer);
    for (int at = 0; !is_message(e) && at < plan_.mesh.size_of(e.axis); ++at) add(at);
    peers.erase(kinds_.kind_of(plan_.rank));
    auto lane =
        std::pair{plan_.mesh.shape_of(e.axis, plan_.rank), channel_of(e, plan_.mesh, plan_.rank)};
    if (plan_.mesh.one_lane) lane = {};
    const Trip trip = machine_.trip(e, plan_.mesh, plan_.rank);
    Transfer t{trip.seconds, {peers.begin(), peers.end()}, {}, lane_of(lane), e.axis};
    t.compute_share = machine_.compute_share(e, plan_.mesh, plan_.rank), t.use = trip.use;
    return t;
  }

  // The transfer of a post. A message is identified by its two ranks, tag and microbatch, a
  // collective by the number of collectives before it on its axis.
  Transfer met(const Step& s) {
    const Exchange& e = plan_.exchanges[static_cast<size_t>(s.index)];
    Transfer t = transfers_[static_cast<size_t>(s.index)];
    if (t.copy) return t;
    const int64_t axis =
        axes_.try_emplace(e.axis, static_cast<int64_t>(axes_.size())).first->second;
    if (is_message(e)) {
      int64_t me = plan_.mesh.coordinate(e.axis, plan_.rank), peer = e.root_or_peer;
      if (e.op == ORR_COLL_RECV) std::swap(me, peer);
      t.meeting = {me, peer, e.tag, s.microbatch, 0};
    } else {
      t.meeting = {axis, collectives_[axis]++, 0, 0, 1};
    }
    return t;
  }

  const RankPlan& plan_;
  const RankKinds& kinds_;
  const Machine& machine_;
  std::vector<double> launch_seconds_;
  std::vector<Transfer> transfers_;                      // by exchange
  std::map<std::pair<Mesh::Shape, int>, size_t> lanes_;  // by the axis's shape and the channel
  std::map<std::string, int64_t> axes_;
  std::map<int64_t, int64_t> collectives_;
  Timeline made_;
};

}  // namespace

Timeline timeline_of(const RankPlan& plan, const RankKinds& kinds, const Machine& machine) {
  return Builder(plan, kinds, machine).run();
}

}  // namespace orrery
