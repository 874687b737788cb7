// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "base/error.h"
#include "program/rewrite.h"

namespace orrery {
namespace {

class Orderer {
 public:
  Orderer(Program& p, const StandBefore& before) : p_(p), before_(before) {
    from_.swap(p.mutable_ops());
    moved_.assign(from_.size(), kNone), open_.assign(from_.size(), false);
  }

  void run() {
    for (size_t i = 0; i < from_.size(); ++i) emit(static_cast<OpId>(i));
    for (size_t i = 0; i < p_.ops().size(); ++i) {
      Op& op = p_.mutable_ops()[i];
      if (op.twin != kNone) op.twin = moved_[static_cast<size_t>(op.twin)];
      for (size_t j = 0; j < op.out.size(); ++j) {
        Value& v = p_.mutable_value(op.out[j]);
        v.producer = static_cast<OpId>(i), v.out_index = static_cast<int32_t>(j);
      }
    }
  }

 private:
  // Appends the ops that this op needs, then the op. It uses an explicit stack, because chains of
  // new ops may be long.
  void emit(OpId first) {
    if (moved_[at(first)] != kNone) return;
    std::vector<std::pair<OpId, size_t>> todo = {{first, 0}};  // op, the next that it needs
    open_[at(first)] = true;
    while (!todo.empty()) {
      auto& [op, next] = todo.back();
      if (next == needs(op)) {
        moved_[at(op)] = static_cast<OpId>(p_.ops().size());
        p_.mutable_ops().push_back(std::move(from_[at(op)]));
        todo.pop_back();
        continue;
      }
      const OpId needed = need(op, next++);
      if (needed == kNone || moved_[at(needed)] != kNone) continue;
      if (std::exchange(open_[at(needed)], true))
        fail(ORR_INVALID, "{}{} would be computed from its own result",
             from_[at(needed)].site.prefix(), from_[at(needed)].kind);
      todo.emplace_back(needed, 0);
    }
  }

  // What must stand before an op: what makes its inputs, and then the ops that are to stand there.
  size_t needs(OpId op) const { return from_[at(op)].in.size() + standing(op).size(); }
  OpId need(OpId op, size_t i) const {
    const std::vector<ValueId>& in = from_[at(op)].in;
    return i < in.size() ? p_.value(in[i]).producer : standing(op)[i - in.size()];
  }
  const std::vector<OpId>& standing(OpId op) const {
    static const std::vector<OpId> none;
    const auto found = before_.find(op);
    return found == before_.end() ? none : found->second;
  }
  static size_t at(OpId op) { return static_cast<size_t>(op); }

  Program& p_;
  const StandBefore& before_;
  std::vector<Op> from_;
  std::vector<OpId> moved_;  // by op: its new id; kNone: not appended yet
  std::vector<char> open_;   // by op: emit has begun with it
};

}  // namespace

void order_ops(Program& p, const StandBefore& before) {
  if (!before.empty()) return Orderer(p, before).run();
  for (size_t i = 0; i < p.ops().size(); ++i)
    for (ValueId v : p.ops()[i].in)
      if (p.value(v).producer >= static_cast<OpId>(i)) return Orderer(p, before).run();
}

}  // namespace orrery
