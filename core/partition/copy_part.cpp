// SPDX-License-Identifier: Apache-2.0
#include "partition/copy_part.h"

#include "base/error.h"
#include "program/rewrite.h"

namespace orrery {
namespace {

class Copier {
 public:
  Copier(const Program& from, const std::map<ValueId, ValueId>& given, Program& to)
      : from_(from), map_(given), to_(to) {}

  ValueId value(ValueId v) {
    if (auto known = map_.find(v); known != map_.end()) return known->second;
    const Value& original = from_.value(v);
    const Site before = to_.site();
    to_.set_site(original.site);
    const ValueId made = fresh(original);
    to_.set_site(before);
    return map_[v] = made;
  }

  void copy(const Op& op) {
    Op made = op;
    made.twin = kNone, made.phase = to_.phase(), made.stage = 0;
    for (ValueId& v : made.in) v = value(v);
    if (op.kind == "total" || op.kind == "stop_gradient" || op.kind == "user_gradient" ||
        op.kind == "unshard") {
      map_[op.out[0]] = made.in[0];
      return;
    }
    for (ValueId& v : made.out) v = value(v);
    to_.append(std::move(made));
  }

 private:
  ValueId fresh(const Value& original) {
    if (original.state) return to_.state_value(original.state);
    if (original.role == Role::scalar) return to_.scalar_input(original.name, original.type.dtype);
    if (original.producer == kNone)
      fail(ORR_INVALID, "{}a program beside the step has no batch, and needs '{}'",
           original.site.prefix(), original.name);
    const ValueId made = to_.new_value(original.type, original.role, original.name);
    to_.mutable_value(made).site = original.site;
    return made;
  }

  const Program& from_;
  std::map<ValueId, ValueId> map_;
  Program& to_;
};

}  // namespace

std::vector<ValueId> copy_part(const Program& from, const std::map<ValueId, ValueId>& given,
                               const std::vector<ValueId>& wanted, Program& to) {
  Copier copier(from, given, to);
  const std::vector<bool> needed =
      ops_behind(from, wanted, [&](ValueId v) { return given.count(v) > 0; });
  for (size_t i = 0; i < needed.size(); ++i)
    if (needed[i]) copier.copy(from.ops()[i]);
  std::vector<ValueId> found;
  for (ValueId v : wanted) found.push_back(copier.value(v));
  return found;
}

}  // namespace orrery
