// SPDX-License-Identifier: Apache-2.0
#include "lower/abi_op.h"

#include <set>

#include "program/custom_kind.h"

namespace orrery {
namespace {

// Attributes that a kernel does not get, because its tensors have the same numbers.
const std::set<std::string> kInTensors = {"dims", "begin", "end", "heads", "ta",    "tb",
                                          "dim",  "size",  "n",   "dtype", "length"};

}  // namespace

orr_attr abi_attr(const std::string& name, const Attr& attr) {
  orr_attr a{};
  a.name = name.c_str();
  if (auto* i = std::get_if<int64_t>(&attr)) a.type = ORR_ATTR_INT, a.i = *i;
  if (auto* f = std::get_if<double>(&attr)) a.type = ORR_ATTR_REAL, a.f = *f;
  if (auto* s = std::get_if<std::string>(&attr)) a.type = ORR_ATTR_TEXT, a.text = s->c_str();
  if (auto* n = std::get_if<Dims>(&attr))
    a.type = ORR_ATTR_INTS, a.ints = n->data(), a.count = static_cast<int32_t>(n->size());
  return a;
}

orr_expr abi_expr(const Expr& e) {
  return {sizeof(orr_expr),
          static_cast<int32_t>(e.instrs.size()),
          static_cast<int32_t>(e.outputs.size()),
          0,
          e.instrs.data(),
          e.outputs.data()};
}

AbiGroup::AbiGroup(const OpGroup& group, const std::vector<int32_t>& calls, bool fused) {
  for (const Op& op : group.ops) add(op, group.types);
  for (size_t i = 0; i < group.ops.size(); ++i)
    ops_.push_back({sizeof(orr_group_op), calls.empty() ? 0 : calls[i], &members_[i].op,
                    group.ops[i].in.data(), group.ops[i].out.data()});
  group_ = {sizeof(orr_group),
            static_cast<int32_t>(ops_.size()),
            static_cast<int32_t>(group.types.size()),
            static_cast<int32_t>(group.in.size()),
            static_cast<int32_t>(group.out.size()),
            fused,
            ops_.data(),
            group.in.data(),
            group.out.data()};
}

void AbiGroup::add(const Op& op, const std::vector<Type>& types) {
  Member& m = members_.emplace_back();
  m.where = op.site.prefix();
  const auto tensor = [&](ValueId v) {
    return Strided::contiguous(types[static_cast<size_t>(v)]).abi();
  };
  for (ValueId v : op.in) m.in.push_back(tensor(v));
  for (ValueId v : op.out) m.out.push_back(tensor(v));
  for (auto& [name, attr] : op.attrs) m.attrs.push_back(abi_attr(name, attr));
  m.expr = abi_expr(op.expr);
  m.op = {sizeof(orr_op),
          static_cast<int32_t>(m.in.size()),
          static_cast<int32_t>(m.out.size()),
          static_cast<int32_t>(m.attrs.size()),
          op.kind.c_str(),
          m.in.data(),
          m.out.data(),
          m.attrs.data(),
          op.expr.instrs.empty() ? nullptr : &m.expr,
          m.where.c_str(),
          nullptr};
}

// A kernel of an op that a plugin brings gets all its options.
static bool is_given(const Op& op, const std::string& name) {
  return !kInTensors.count(name) || custom_kind(op.kind);
}

AbiOp::AbiOp(const Launch& launch) : where_(launch.op.site.prefix()) {
  for (auto& [name, attr] : launch.op.attrs)
    if (is_given(launch.op, name)) attrs_.push_back(abi_attr(name, attr));
  if (launch.op.group) group_ = std::make_unique<AbiGroup>(*launch.op.group);
  const Expr& e = launch.op.expr;

  expr_ = abi_expr(e);
  op_ = {sizeof(orr_op),
         static_cast<int32_t>(launch.in.size()),
         static_cast<int32_t>(launch.out.size()),
         static_cast<int32_t>(attrs_.size()),
         launch.op.kind.c_str(),
         launch.in.data(),
         launch.out.data(),
         attrs_.data(),
         e.instrs.empty() ? nullptr : &expr_,
         where_.c_str(),
         group_ ? group_->get() : nullptr};
}

}  // namespace orrery
