// SPDX-License-Identifier: Apache-2.0
#include "program/op_group.h"

#include <map>

#include "program/op.h"
#include "program/relate.h"

namespace orrery {
namespace {

// Gives values of a program their numbers in a group.
class Numbers {
 public:
  explicit Numbers(const Program& p) : p_(p) {}

  ValueId of(ValueId v, OpGroup& group) {
    const auto [at, fresh] = known_.try_emplace(v, static_cast<ValueId>(group.types.size()));
    if (fresh) group.types.push_back(p_.type(v));
    return at->second;
  }
  bool knows(ValueId v) const { return known_.count(v) > 0; }

 private:
  const Program& p_;
  std::map<ValueId, ValueId> known_;
};

std::vector<Type> infer(const OpArgs& args) {
  std::vector<Type> types;
  for (ValueId v : args.group->out) types.push_back(args.group->types[static_cast<size_t>(v)]);
  return types;
}

// Parts were cut before groups are made.
Sharding uncut(const OpArgs& args, const std::vector<Type>& out) {
  return row_sharding(args, out, ORR_MAX_RANK + 1, 0);
}

// All flops of the ops, but only what goes in and comes out is read and written.
Cost cost(const OpArgs& args, const std::vector<Type>& out) {
  Cost sum;
  for (const Op& op : args.group->ops) {
    OpArgs its{op.kind, op.attrs, op.expr, {}};
    std::vector<Type> makes;
    for (ValueId v : op.in) its.in.push_back(args.group->types[static_cast<size_t>(v)]);
    for (ValueId v : op.out) makes.push_back(args.group->types[static_cast<size_t>(v)]);
    const Cost each = op_def(op.kind).cost(its, makes);
    sum.flops += each.flops, sum.matrix = sum.matrix || each.matrix;
  }
  for (const Type& t : args.in) sum.bytes += static_cast<double>(t.bytes());
  for (const Type& t : out) sum.bytes += static_cast<double>(t.bytes());
  return sum;
}

// Inputs have the strides that they have: the kernel says which it takes.
KernelForm form(const Op&, const std::vector<Strided>& in, const std::vector<Strided>& out) {
  KernelForm f = contiguous_form(in, out);
  f.in = in, f.copy.clear();
  return f;
}

}  // namespace

const OpDef group_op{"group", infer, uncut, nullptr, cost, form};

Op as_one(const Program& p, const std::vector<OpId>& ops,
          const std::function<bool(ValueId)>& is_read) {
  const auto group = std::make_shared<OpGroup>();
  Op one;
  Numbers numbers(p);
  for (OpId id : ops) {
    Op op = p.ops()[static_cast<size_t>(id)];
    for (ValueId& v : op.in) {
      const bool given = !numbers.knows(v);
      const ValueId number = numbers.of(v, *group);
      if (given) group->in.push_back(number), one.in.push_back(v);
      v = number;
    }
    for (ValueId& v : op.out) {
      const ValueId number = numbers.of(v, *group);
      if (is_read(v)) group->out.push_back(number), one.out.push_back(v);
      v = number;
    }
    one.phase = op.phase, one.site = op.site, one.stage = op.stage, one.twin = op.twin;
    group->ops.push_back(std::move(op));
  }
  one.kind = group_op.kind, one.group = group;
  return one;
}

std::string shown_kind(const Op& op) {
  if (!op.group) return op.kind;
  std::string names;
  for (size_t i = 0, alike = 0; i < op.group->ops.size(); i += alike, alike = 0) {
    const std::string name = name_of(op.group->ops[i]);
    while (i + alike < op.group->ops.size() && name_of(op.group->ops[i + alike]) == name) ++alike;
    names += (i > 0 ? " + " : "") + (alike > 1 ? std::to_string(alike) + " " : "") + name;
  }
  return names;
}

}  // namespace orrery
