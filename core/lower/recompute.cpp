// SPDX-License-Identifier: Apache-2.0
#include "lower/recompute.h"

#include <set>

namespace orrery {
namespace {

class Recomputer {
 public:
  Recomputer(Program& p, const Spread& spread) : p_(p), old_(p.ops()), lives_(spread.lives) {
    for (auto& [v, life] : lives_)
      if (!life.kept && repeatable(v)) repeated_.insert(v);
    for (const Op& op : old_)
      if (op.phase != Phase::backward)
        for (ValueId v : op.in)
          if (repeated_.count(v) && region_of(op) != lives_.at(v).region) repeated_.erase(v);
    for (auto& [state, next] : p.updates()) repeated_.erase(next);
    for (auto& [name, id] : p.outputs()) repeated_.erase(id);
  }

  void run() {
    moved_.assign(old_.size(), kNone);
    for (size_t i = 0; i < old_.size(); ++i) {
      Op op = old_[i];
      if (op.phase == Phase::backward)
        for (ValueId& v : op.in) v = again(v);
      moved_[i] = static_cast<OpId>(ops_.size());
      ops_.push_back(std::move(op));
    }
    for (Op& op : ops_)
      if (op.twin != kNone) op.twin = moved_[static_cast<size_t>(op.twin)];
    p_.mutable_ops() = std::move(ops_);
    number_producers();
  }

 private:
  const Op& maker(ValueId v) const { return old_[static_cast<size_t>(p_.value(v).producer)]; }

  bool repeatable(ValueId v) const {
    const Value& value = p_.value(v);
    return value.producer != kNone && value.batch == Batch::sharded &&
           maker(v).phase == Phase::forward;
  }

  // That of what the op makes.
  std::string region_of(const Op& op) const {
    auto at = lives_.find(op.out.empty() ? kNone : op.out[0]);
    return at == lives_.end() ? std::string() : at->second.region;
  }

  // v as backward reads it.
  ValueId again(ValueId v) {
    if (!repeated_.count(v)) return v;
    if (auto known = clone_.find(v); known != clone_.end()) return known->second;
    Op op = maker(v);
    op.phase = Phase::backward, op.twin = p_.value(v).producer;
    for (ValueId& x : op.in) x = again(x);
    for (ValueId& y : op.out) {
      const Value original = p_.value(y);
      ValueId copy = p_.new_value(original.type, original.role, original.name);
      Value& made = p_.mutable_value(copy);
      made.batch = original.batch, made.batch_dim = original.batch_dim, made.site = original.site;
      clone_[y] = copy, y = copy;
    }
    ops_.push_back(std::move(op));
    return clone_.at(v);
  }

  void number_producers() {
    for (size_t i = 0; i < p_.ops().size(); ++i)
      for (size_t j = 0; j < p_.ops()[i].out.size(); ++j) {
        Value& v = p_.mutable_value(p_.ops()[i].out[j]);
        v.producer = static_cast<OpId>(i), v.out_index = static_cast<int32_t>(j);
      }
  }

  Program& p_;
  const std::vector<Op> old_;
  const std::map<ValueId, Life>& lives_;
  std::set<ValueId> repeated_;
  std::map<ValueId, ValueId> clone_;
  std::vector<Op> ops_;
  std::vector<OpId> moved_;
};

}  // namespace

void recompute(Program& p, const Spread& spread) {
  if (!spread.lives.empty()) Recomputer(p, spread).run();
}

}  // namespace orrery
