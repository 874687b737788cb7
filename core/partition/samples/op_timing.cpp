// SPDX-License-Identifier: Apache-2.0
#include "partition/samples/op_timing.h"

#include <algorithm>
#include <set>

#include "partition/localize.h"
#include "program/rewrite.h"

namespace orrery {
namespace {

class TimingFinder {
 public:
  explicit TimingFinder(const Program& p) : p_(p) { timing_.live = live_ops(p); }

  OpTiming run() {
    mark_early();
    mark_scattered();
    mark_late();
    return std::move(timing_);
  }

 private:
  const Op& maker_of(ValueId v) const {
    return p_.ops()[static_cast<size_t>(p_.value(v).producer)];
  }

  // Walks back from each sum that samples read to the ops that sum over samples.
  void mark_early() {
    timing_.early.assign(p_.ops().size(), false);
    std::vector<ValueId> todo;
    for (size_t i = 0; i < p_.ops().size(); ++i)
      if (p_.ops()[i].kind == "batch_sum" && timing_.live[i])
        timing_.early[i] = true, todo.push_back(p_.ops()[i].in[0]);
    while (!todo.empty()) {
      const ValueId v = todo.back();
      todo.pop_back();
      if (p_.value(v).batch() != Batch::partial || reads_any(p_, maker_of(v), Batch::sharded))
        continue;
      timing_.early[static_cast<size_t>(p_.value(v).producer)] = true;
      todo.insert(todo.end(), maker_of(v).in.begin(), maker_of(v).in.end());
    }
    group_early();
  }

  // Numbers the groups: one ends where an op reads a sum of it, which must be complete by then. The
  // groups are the same on all ranks, whatever ops a rank leaves out.
  void group_early() {
    std::set<ValueId> open;
    int64_t group = 0;
    for (size_t i = 0; i < p_.ops().size(); ++i) {
      const Op& op = p_.ops()[i];
      if (op.kind != "batch_sum" &&
          std::any_of(op.in.begin(), op.in.end(), [&](ValueId v) { return open.count(v) > 0; }))
        open.clear(), ++group;
      if (!timing_.early[i]) continue;
      for (ValueId v : op.in)
        if (p_.value(v).batch() == Batch::partial && timing_.group.emplace(v, group).second)
          open.insert(v);
      if (op.kind == "batch_sum")
        open.insert(op.out[0]);
      else
        open.clear(), ++group;
    }
  }

  // Walks back from each such reduce-scatter to the op that sums over samples, which is no part of
  // it.
  void mark_scattered() {
    timing_.scattered.assign(p_.ops().size(), false);
    for (size_t i = p_.ops().size(); i-- > 0;) {
      const Op& op = p_.ops()[i];
      if (op.kind == "reduce_scatter" && op.exchange().each) timing_.scattered[i] = true;
      if (!timing_.scattered[i]) continue;
      for (ValueId v : op.in)
        if (!reads_any(p_, maker_of(v), Batch::sharded))
          timing_.scattered[static_cast<size_t>(p_.value(v).producer)] = true;
    }
  }

  // Ops that need a total run after all samples, whatever phase wrote them. So do linear ops on
  // sums over the batch: applied to a rank's tree nodes instead of the complete sum, they would
  // round differently, and the bits would depend on the number of ranks.
  void mark_late() {
    timing_.late.assign(p_.ops().size(), false);
    for (size_t i = 0; i < p_.ops().size(); ++i) {
      const Op& op = p_.ops()[i];
      timing_.late[i] = !timing_.early[i] && !timing_.scattered[i] &&
                        (op.phase == Phase::update || op.kind == "total" ||
                         op.kind == "batch_mean" || reads_any(p_, op, Batch::partial) ||
                         std::any_of(op.in.begin(), op.in.end(), [&](ValueId v) {
                           OpId producer = p_.value(v).producer;
                           return producer != kNone && timing_.late[static_cast<size_t>(producer)];
                         }));
    }
  }

  const Program& p_;
  OpTiming timing_;
};

}  // namespace

bool is_awaited(const Op& op) {
  return op.kind == "send" || op.kind == "recv" || op.kind == "total" || op.kind == "batch_sum" ||
         op.kind == "batch_gather" || op.exchange().awaited;
}

std::vector<bool> live_ops(const Program& p) {
  std::vector<ValueId> wanted;
  for (auto& [name, id] : p.outputs()) wanted.push_back(id);
  for (auto& [state, next] : p.updates()) wanted.push_back(next);
  for (const Op& op : p.ops())
    if (is_awaited(op)) wanted.insert(wanted.end(), op.in.begin(), op.in.end());
  std::vector<bool> live = ops_behind(p, std::move(wanted));
  for (size_t i = 0; i < live.size(); ++i) live[i] = live[i] || is_awaited(p.ops()[i]);
  return live;
}

bool reads_any(const Program& p, const Op& op, Batch batch) {
  return std::any_of(op.in.begin(), op.in.end(),
                     [&](ValueId v) { return p.value(v).batch() == batch; });
}

OpTiming find_timing(const Program& p) { return TimingFinder(p).run(); }

}  // namespace orrery
