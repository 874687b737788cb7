// SPDX-License-Identifier: Apache-2.0
#include "partition/samples/turns.h"

#include <algorithm>
#include <set>

#include "partition/localize.h"
#include "program/rewrite.h"

namespace orrery {
namespace {

class TurnFinder {
 public:
  explicit TurnFinder(const Program& p) : p_(p) { turns_.live = live_ops(p); }

  Turns run() {
    mark_early();
    mark_own();
    mark_late();
    return std::move(turns_);
  }

 private:
  const Op& maker_of(ValueId v) const {
    return p_.ops()[static_cast<size_t>(p_.value(v).producer)];
  }

  // Ops that compute, from sums over the batch, what ops of samples read stay in their place.
  void mark_early() {
    turns_.early.assign(p_.ops().size(), false);
    std::vector<ValueId> todo;
    for (size_t i = 0; i < p_.ops().size(); ++i)
      if (p_.ops()[i].kind == "batch_sum" && turns_.live[i])
        turns_.early[i] = true, todo.push_back(p_.ops()[i].in[0]);
    while (!todo.empty()) {
      const ValueId v = todo.back();
      todo.pop_back();
      if (p_.value(v).batch() != Batch::partial || reads_any(p_, maker_of(v), Batch::sharded))
        continue;
      turns_.early[static_cast<size_t>(p_.value(v).producer)] = true;
      todo.insert(todo.end(), maker_of(v).in.begin(), maker_of(v).in.end());
    }
    group_early();
  }

  // Sums that samples read travel together until one of them is read. The groups are the same on
  // all ranks, whatever part of the program a rank leaves out.
  void group_early() {
    std::set<ValueId> open;
    int64_t group = 0;
    for (size_t i = 0; i < p_.ops().size(); ++i) {
      const Op& op = p_.ops()[i];
      if (op.kind != "batch_sum" &&
          std::any_of(op.in.begin(), op.in.end(), [&](ValueId v) { return open.count(v) > 0; }))
        open.clear(), ++group;
      if (!turns_.early[i]) continue;
      for (ValueId v : op.in)
        if (p_.value(v).batch() == Batch::partial && turns_.group.emplace(v, group).second)
          open.insert(v);
      if (op.kind == "batch_sum")
        open.insert(op.out[0]);
      else
        open.clear(), ++group;
    }
  }

  // The sum of the samples ends an own chain at its beginning.
  void mark_own() {
    turns_.own.assign(p_.ops().size(), false);
    for (size_t i = p_.ops().size(); i-- > 0;) {
      const Op& op = p_.ops()[i];
      if (op.kind == "reduce_scatter" && op.exchange().each) turns_.own[i] = true;
      if (!turns_.own[i]) continue;
      for (ValueId v : op.in)
        if (!reads_any(p_, maker_of(v), Batch::sharded))
          turns_.own[static_cast<size_t>(p_.value(v).producer)] = true;
    }
  }

  // Ops that need a total run after the batch, whatever phase wrote them. So do linear ops on sums
  // over the batch: applied to each rank's tree nodes they would round differently on other ranks.
  void mark_late() {
    turns_.late.assign(p_.ops().size(), false);
    for (size_t i = 0; i < p_.ops().size(); ++i) {
      const Op& op = p_.ops()[i];
      turns_.late[i] = !turns_.early[i] && !turns_.own[i] &&
                       (op.phase == Phase::update || op.kind == "total" ||
                        op.kind == "batch_mean" || reads_any(p_, op, Batch::partial) ||
                        std::any_of(op.in.begin(), op.in.end(), [&](ValueId v) {
                          OpId producer = p_.value(v).producer;
                          return producer != kNone && turns_.late[static_cast<size_t>(producer)];
                        }));
    }
  }

  const Program& p_;
  Turns turns_;
};

}  // namespace

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

Turns find_turns(const Program& p) { return TurnFinder(p).run(); }

}  // namespace orrery
