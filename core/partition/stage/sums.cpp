// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>

#include "partition/stage.h"

namespace orrery {
namespace {

class Completer {
 public:
  explicit Completer(Program& p) : p_(p) {}

  void run() {
    std::vector<Op> from;
    from.swap(p_.mutable_ops());
    find_readers(from);
    std::vector<OpId> moved;
    for (Op& op : from) {
      if (unread_[static_cast<size_t>(&op - from.data())]) {
        for (ValueId v : op.out) p_.mutable_value(v).producer = kNone;
        moved.push_back(kNone);
        continue;
      }
      if (op.twin != kNone) op.twin = moved[static_cast<size_t>(op.twin)];
      read_wholes(op);
      moved.push_back(static_cast<OpId>(p_.ops().size()));
      if (op.kind == "total" && p_.value(op.in[0]).batch() != Batch::partial) {
        wholes_[op.out[0]] = op.in[0];
        p_.mutable_value(op.out[0]).producer = kNone;
        continue;
      }
      p_.append(op);
      for (ValueId v : op.out)
        if (wanted_.count(v) && p_.value(v).batch() == Batch::partial) complete(op, v);
    }
    for (auto& [name, v] : p_.mutable_outputs()) v = whole(v);
    for (auto& [state, next] : p_.mutable_updates()) next = whole(next);
  }

 private:
  // Finds the sums that are read by ops whose results are needed, and the means that nothing needs:
  // without their totals they would read parts of sums.
  void find_readers(const std::vector<Op>& ops) {
    std::vector<char> needed(p_.values().size());
    unread_.resize(ops.size());
    for (auto& [name, v] : p_.outputs()) needed[static_cast<size_t>(v)] = true;
    for (auto& [state, next] : p_.updates()) needed[static_cast<size_t>(next)] = true;
    for (size_t i = ops.size(); i-- > 0;) {
      const Op& op = ops[i];
      if (std::none_of(op.out.begin(), op.out.end(),
                       [&](ValueId v) { return needed[static_cast<size_t>(v)]; })) {
        unread_[i] = is_mean(op);
        continue;
      }
      for (ValueId v : op.in) {
        needed[static_cast<size_t>(v)] = true;
        if (op.kind != "total" && p_.value(v).batch() == Batch::partial) wanted_.insert(v);
      }
    }
  }

  bool is_mean(const Op& op) const {
    return !op.out.empty() && std::all_of(op.out.begin(), op.out.end(), [&](ValueId v) {
      return p_.value(v).batch() == Batch::mean;
    });
  }

  // v, or its total if it has one.
  ValueId whole(ValueId v) const {
    auto found = wholes_.find(v);
    return found == wholes_.end() ? v : found->second;
  }

  // Lets the op read totals. What it makes of totals is no sum over the batch any more, and needs
  // no total itself.
  void read_wholes(Op& op) {
    if (op.kind == "total") {
      if (p_.value(op.in[0]).batch() != Batch::partial) op.in[0] = whole(op.in[0]);
      return;
    }
    for (ValueId& v : op.in) v = whole(v);
    const bool sums = std::any_of(op.in.begin(), op.in.end(), [&](ValueId v) {
      return p_.value(v).batch() == Batch::sharded || p_.value(v).batch() == Batch::partial;
    });
    if (sums) return;
    for (ValueId v : op.out)
      if (p_.value(v).batch() == Batch::partial) p_.mutable_value(v).set_batch(Batch::none);
  }

  void complete(const Op& maker, ValueId sum) {
    Op total;
    total.kind = "total", total.in = {sum}, total.phase = maker.phase, total.site = maker.site;
    total.stage = maker.stage;
    const Value made = p_.value(sum);
    total.out = {wholes_[sum] = p_.new_value(made.type, made.role, made.name)};
    p_.append(std::move(total));
  }

  Program& p_;
  std::vector<char> unread_;  // by op: it makes means that nothing needs
  std::set<ValueId> wanted_;  // sums over the batch that ops other than totals read
  std::map<ValueId, ValueId> wholes_;
};

}  // namespace

void complete_sums(Program& p) { Completer(p).run(); }

}  // namespace orrery
