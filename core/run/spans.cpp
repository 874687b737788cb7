// SPDX-License-Identifier: Apache-2.0
#include "run/spans.h"

#include <chrono>
#include <map>
#include <orrery/sdk/traffic.hpp>
#include <string>

#include "base/digest.h"
#include "program/op_group.h"

namespace orrery {
namespace {

// The number of an arrow: equal on the two ranks that it binds, and hardly on others.
uint64_t arrow(const Exchange& e, const Step& at, int64_t step, int from, int to) {
  // An exchange without a name of its own has its operation's, as "send", which differs.
  const std::string name = e.name == orr::traffic::name(e.op) ? "" : e.name;
  const std::string key =
      fmt::format("{} {} {} {} {} {}", step, from, to, name, e.tag, at.microbatch);
  Digest digest;
  digest.add(key.data(), key.size());
  return (digest.number() >> 12) | 1;  // JSON readers keep 53 bits
}

// A message is one arrow. The ranks of a collective are bound to a ring.
void bind(const RankPlan& plan, const Exchange& e, const Step& at, orr_event_record& span) {
  const int ranks = plan.mesh.size_of(e.axis), me = plan.rank;
  if (e.axis.empty() || ranks < 2) return;
  const int here = plan.mesh.coordinate(e.axis, me);
  const auto rank = [&](int coordinate) { return plan.mesh.peer(e.axis, coordinate, me); };
  const bool sends = e.op == ORR_COLL_SEND, receives = e.op == ORR_COLL_RECV;
  const int next = sends ? e.root_or_peer : (here + 1) % ranks;
  const int before = receives ? e.root_or_peer : (here + ranks - 1) % ranks;
  if (!receives) span.arrow_out = arrow(e, at, span.step, me, rank(next));
  if (!sends) span.arrow_in = arrow(e, at, span.step, rank(before), me);
}

void describe(const RankPlan& plan, const Step& at, orr_event_record& span, std::string& text,
              std::string& detail) {
  span.phase = static_cast<int32_t>(at.segment), span.stage = at.chunk;
  span.microbatch = plan.actions.empty() ? -1 : at.microbatch;
  if (at.kind == Step::launch) {
    const Launch& launch = plan.launches[static_cast<size_t>(at.index)];
    span.flops = launch.cost.flops;
    text = shown_kind(launch.op);
    detail = launch.op.site.region + " " + launch.op.site.line;
    return;
  }
  const Exchange& e = plan.exchanges[static_cast<size_t>(at.index)];
  text = at.kind == Step::wait ? "wait" : e.name;
  detail = at.kind == Step::wait ? e.name : e.where;
  if (at.kind == Step::wait) return;
  span.bytes = e.is_copy() ? e.bytes() : e.bytes_sent;
  bind(plan, e, at, span);
}

// By category: what each step of the schedule adds to the bytes of the arena in use.
using Changes = std::map<std::string, std::vector<int64_t>>;
Changes changes_of(const RankPlan& plan) {
  Changes found;
  for (const Storage& s : plan.storages) {
    if (s.region != Region::arena || !s.bytes) continue;
    std::vector<int64_t>& change = found[s.category];
    change.resize(plan.schedule.size() + 2);
    for (auto& [first, last] : s.alive) {
      change[static_cast<size_t>(first)] += static_cast<int64_t>(s.whole());
      change[static_cast<size_t>(last) + 1] -= static_cast<int64_t>(s.whole());
    }
  }
  return found;
}

}  // namespace

double Spans::now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

void Spans::run(Mark& mark, const std::function<void()>& work) {
  mark.begin = now();
  work();
  mark.end = now();
}

void Spans::send(const RankPlan& plan, int64_t step, Observers& to) const {
  std::string text, detail;
  for (size_t i = 0; i < marks_.size(); ++i) {
    const Mark& mark = marks_[i];
    if (mark.end == 0) continue;
    orr_event_record span{};
    span.kind = ORR_EVENT_SPAN, span.step = step, span.lane = mark.lane;
    span.time = mark.begin, span.seconds = mark.end - mark.begin;
    describe(plan, plan.schedule[i], span, text, detail);
    span.text = text.c_str(), span.detail = detail.c_str();
    to.send(span);
  }
  for (auto& [category, change] : changes_of(plan)) {
    int64_t bytes = 0;
    for (size_t i = 0; i < marks_.size(); ++i) {
      bytes += change[i];
      if (change[i] == 0 || marks_[i].begin == 0) continue;
      orr_event_record level{};
      level.kind = ORR_EVENT_LEVEL, level.step = step, level.time = marks_[i].begin;
      level.text = category.c_str(), level.value = static_cast<double>(bytes);
      to.send(level);
    }
  }
}

std::map<std::string, uint64_t> peak_of_arena(const RankPlan& plan) {
  const Changes changes = changes_of(plan);
  std::map<std::string, int64_t> now;
  std::map<std::string, uint64_t> peak;
  int64_t all = 0, most = 0;
  for (size_t i = 0; i < plan.schedule.size(); ++i) {
    for (auto& [category, change] : changes) now[category] += change[i], all += change[i];
    if (all <= most) continue;
    most = all;
    for (auto& [category, bytes] : now) peak[category] = static_cast<uint64_t>(bytes);
  }
  return peak;
}

}  // namespace orrery
