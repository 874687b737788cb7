// SPDX-License-Identifier: Apache-2.0
//
// Orders forward and backward with one microbatch after another: the plan's template steps are
// repeated for each action of the rank's table. The messages of a channel (lower/channel.h) go
// through one lane, which carries them out in the order of their posts: by the time at which, in
// the simulated schedule, the action that makes the message ends. This order is the same on all
// ranks, and a rank posts a receive before any later message, so it waits only for what comes
// before. So no two ranks wait for each other, even if no message is buffered and all channels
// share a lane.
#include <algorithm>
#include <map>
#include <tuple>

#include "base/error.h"
#include "lower/channel.h"
#include "lower/lower.h"

namespace orrery {
namespace {

struct Template {
  std::vector<Step> compute, sends, receives;
  bool collective = false;  // it has exchanges other than messages
};

struct Message {
  std::tuple<double, int, int> key;  // the end and the chunk of the action that makes it; its tag
  Step step;
  size_t from, to;  // it is posted before action `from` at the earliest, before `to` at the latest
};

class ActionOrder {
 public:
  explicit ActionOrder(RankPlan& plan) : plan_(plan) {
    for (const Exchange& b : plan.exchanges)
      if (b.is_bucket() && b.merge != kNone) stacks_.emplace(b.send.storage, stack_of(b));
  }

  void run() {
    for (const Step& s : plan_.order) add_to_template(s);
    std::vector<Message> messages = ordered_messages();
    auto next = messages.begin();
    std::vector<Step> sent;  // sends before the last action; they are awaited to free their memory
    for (size_t i = 0; i <= plan_.actions.size(); ++i) {
      std::vector<Step> before = std::move(sent);
      sent.clear();
      for (; next != messages.end() && next->from <= i; ++next) {
        plan_.schedule.push_back(next->step);
        if (exchange(next->step).op == ORR_COLL_SEND) sent.push_back(next->step);
      }
      for (Step s : before) s.kind = Step::wait, plan_.schedule.push_back(s);
      if (i < plan_.actions.size()) emit(plan_.actions[i]);
    }
  }

 private:
  const Span& time_of(const Action& action) const { return plan_.timetable->times.at(action); }
  const Exchange& exchange(const Step& s) const {
    return plan_.exchanges[static_cast<size_t>(s.index)];
  }

  void add_to_template(const Step& s) {
    if (s.segment == Segment::prologue) plan_.schedule.push_back(s);
    if (s.segment == Segment::prologue || s.segment == Segment::update) return;
    Template& t = templates_[{s.segment, s.chunk}];
    int32_t op = s.kind == Step::post ? exchange(s).op : 0;
    t.collective |= s.kind == Step::post && op != ORR_COLL_SEND && op != ORR_COLL_RECV;
    (op == ORR_COLL_SEND ? t.sends : op == ORR_COLL_RECV ? t.receives : t.compute).push_back(s);
  }

  NodeStack stack_of(const Exchange& b) const {
    const auto me = static_cast<size_t>(plan_.mesh.coordinate(b.axis, plan_.rank));
    return {b.leaf_first[me], b.leaf_first[me + 1], b.leaf_first.back()};
  }

  // The template step s for a microbatch. A launch that writes a sum writes it on top of the
  // bucket's stack; all its sums belong to one bucket.
  Step placed(Step s, const Action& action) const {
    s.microbatch = action.microbatch;
    if (s.kind != Step::launch) return s;
    for (const Place& x : plan_.launches[static_cast<size_t>(s.index)].out_at)
      if (auto stack = stacks_.find(x.storage); stack != stacks_.end())
        s.depth = stack->second.depth[static_cast<size_t>(action.microbatch)];
    return s;
  }

  bool runs(const Step& s, const Action& action) const {
    if (s.kind != Step::launch) return true;
    switch (plan_.launches[static_cast<size_t>(s.index)].when) {
      case When::first: return action.microbatch == 0;
      case When::later: return action.microbatch > 0;
      case When::last: return action.microbatch + 1 == plan_.local.microbatches.calls();
      default: return true;
    }
  }

  void emit(const Action& action) {
    for (const Step& s : templates_[{action.segment, action.chunk}].compute)
      if (runs(s, action)) plan_.schedule.push_back(placed(s, action));
    for (const Exchange& b : plan_.exchanges) {
      if (!b.is_bucket() || b.merge == kNone || b.segment != action.segment ||
          b.chunk != action.chunk)
        continue;
      const NodeStack& stack = stacks_.at(b.send.storage);
      int depth = stack.depth[static_cast<size_t>(action.microbatch)];
      for (int i = 0; i < stack.merges[static_cast<size_t>(action.microbatch)]; ++i)
        plan_.schedule.push_back(
            {Step::launch, action.segment, b.merge, action.chunk, action.microbatch, depth - i});
    }
  }

  // All messages in the order of their posts, with `from` set. A receive is posted before every
  // message that comes after it in the order of keys, and a channel's messages in that order.
  std::vector<Message> ordered_messages() {
    std::vector<Message> all;
    for (size_t i = 0; i < plan_.actions.size(); ++i) {
      const Action& action = plan_.actions[i];
      const Template& t = templates_[{action.segment, action.chunk}];
      for (const Step& s : t.sends)
        all.push_back({key(s, action), placed(s, action), i + 1, i + 1});
      for (const Step& s : t.receives)
        all.push_back({key(s, action), placed(s, action), earliest(s, i), i});
    }
    std::stable_sort(all.begin(), all.end(), [](auto& a, auto& b) { return a.key < b.key; });
    size_t limit = plan_.actions.size();
    for (size_t i = all.size(); i-- > 0;) limit = all[i].from = std::min(all[i].from, limit);
    std::map<int, size_t> posted;  // by channel: where its last message is posted
    for (Message& m : all) {
      bool send = exchange(m.step).op == ORR_COLL_SEND;
      size_t& before = posted[channel(m.step)];
      before = m.from = std::max(m.from, send ? m.to : before);
      if (m.from > m.to)
        fail(ORR_FAILED, "the plan is wrong: '{}' of microbatch {} would come too late",
             exchange(m.step).name, m.step.microbatch);
    }
    std::stable_sort(all.begin(), all.end(), [](auto& a, auto& b) { return a.from < b.from; });
    return all;
  }

  int channel(const Step& s) const { return channel_of(exchange(s), plan_.mesh, plan_.rank); }

  // The action before which a receive may be posted: one action ahead of its reader, so that the
  // message travels meanwhile, and its sender need not wait until this rank has computed. But if
  // channels share a lane, that action has collectives, and the message does not exist yet when it
  // begins, they would have to wait behind the receive; then it is not posted ahead.
  size_t earliest(const Step& s, size_t action) {
    if (action == 0) return 0;
    if (channel(s) > 0) return action - 1;
    const Action& before = plan_.actions[action - 1];
    bool late = std::get<0>(key(s, plan_.actions[action])) > time_of(before).begin;
    return templates_[{before.segment, before.chunk}].collective && late ? action : action - 1;
  }

  std::tuple<double, int, int> key(const Step& s, const Action& action) const {
    const Exchange& e = exchange(s);
    Action maker = e.op == ORR_COLL_SEND ? action : Action{e.segment, e.chunk, action.microbatch};
    return {time_of(maker).end, maker.chunk, e.tag};
  }

  RankPlan& plan_;
  std::map<int, NodeStack> stacks_;  // by the bucket's storage
  std::map<std::pair<Segment, int>, Template> templates_;
};

}  // namespace

void order_one_by_one(RankPlan& plan) { ActionOrder(plan).run(); }

}  // namespace orrery
