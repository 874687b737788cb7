// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "base/error.h"
#include "program/rewrite.h"

namespace orrery {
namespace {

class Orderer {
 public:
  explicit Orderer(Program& p) : p_(p) {
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
    if (moved_[static_cast<size_t>(first)] != kNone) return;
    std::vector<std::pair<OpId, size_t>> todo = {{first, 0}};  // op, the next of its inputs
    open_[static_cast<size_t>(first)] = true;
    while (!todo.empty()) {
      auto& [op, next] = todo.back();
      Op& at = from_[static_cast<size_t>(op)];
      if (next == at.in.size()) {
        moved_[static_cast<size_t>(op)] = static_cast<OpId>(p_.ops().size());
        p_.mutable_ops().push_back(std::move(at));
        todo.pop_back();
        continue;
      }
      const OpId maker = p_.value(at.in[next++]).producer;
      if (maker == kNone || moved_[static_cast<size_t>(maker)] != kNone) continue;
      if (std::exchange(open_[static_cast<size_t>(maker)], true))
        fail(ORR_INVALID, "{}{} would be computed from its own result",
             from_[static_cast<size_t>(maker)].site.prefix(),
             from_[static_cast<size_t>(maker)].kind);
      todo.emplace_back(maker, 0);
    }
  }

  Program& p_;
  std::vector<Op> from_;
  std::vector<OpId> moved_;  // by op: its new id; kNone: not appended yet
  std::vector<char> open_;   // by op: emit has begun with it
};

}  // namespace

void order_ops(Program& p) {
  for (size_t i = 0; i < p.ops().size(); ++i)
    for (ValueId v : p.ops()[i].in)
      if (p.value(v).producer >= static_cast<OpId>(i)) return Orderer(p).run();
}

}  // namespace orrery
