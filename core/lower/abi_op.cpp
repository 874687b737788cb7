// SPDX-License-Identifier: Apache-2.0
#include "lower/abi_op.h"

#include <set>

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

AbiOp::AbiOp(const Launch& launch) : where_(launch.op.site.prefix()) {
  for (auto& [name, attr] : launch.op.attrs)
    if (!kInTensors.count(name)) attrs_.push_back(abi_attr(name, attr));
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
         where_.c_str()};
}

}  // namespace orrery
