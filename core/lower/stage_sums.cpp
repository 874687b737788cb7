// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "lower/stage.h"

namespace orrery {
namespace {

class Completer {
 public:
  explicit Completer(Program& p) : p_(p) {}

  void run() {
    std::vector<Op> from;
    from.swap(p_.mutable_ops());
    for (const Op& op : from)
      if (op.kind != "total")
        for (ValueId v : op.in) wanted_[v] = p_.value(v).batch == Batch::partial;
    std::vector<OpId> moved;
    for (Op& op : from) {
      if (op.twin != kNone) op.twin = moved[static_cast<size_t>(op.twin)];
      read_wholes(op);
      moved.push_back(static_cast<OpId>(p_.ops().size()));
      p_.append(op);
      for (ValueId v : op.out)
        if (wanted_[v] && p_.value(v).batch == Batch::partial) complete(op, v);
    }
  }

 private:
  // What is made of wholes is no sum over the batch any more.
  void read_wholes(Op& op) {
    if (op.kind == "total") return;
    for (ValueId& v : op.in)
      if (auto whole = wholes_.find(v); whole != wholes_.end()) v = whole->second;
    const bool sums = std::any_of(op.in.begin(), op.in.end(), [&](ValueId v) {
      return p_.value(v).batch == Batch::sharded || p_.value(v).batch == Batch::partial;
    });
    if (sums) return;
    for (ValueId v : op.out)
      if (p_.value(v).batch == Batch::partial) p_.mutable_value(v).batch = Batch::none;
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
  std::map<ValueId, char> wanted_;  // sums over the batch that more than totals read
  std::map<ValueId, ValueId> wholes_;
};

}  // namespace

void complete_sums(Program& p) { Completer(p).run(); }

}  // namespace orrery
