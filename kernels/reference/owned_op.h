// SPDX-License-Identifier: Apache-2.0
//
// A deep copy of an orr_op, which the host only lends for the call to prepare.
#pragma once

#include <orrery/kernel.h>

#include <deque>
#include <string>
#include <vector>

namespace reference {

class OwnedOp {
 public:
  explicit OwnedOp(const orr_op& from)
      : op_(from),
        in_(from.in, from.in + from.n_in),
        out_(from.out, from.out + from.n_out),
        attrs_(from.attrs, from.attrs + from.n_attrs) {
    op_.kind = keep(from.kind);
    op_.where = keep(from.where);
    op_.in = in_.data();
    op_.out = out_.data();
    for (orr_attr& a : attrs_) {
      a.name = keep(a.name);
      a.text = keep(a.text);
      if (a.ints) a.ints = lists_.emplace_back(a.ints, a.ints + a.count).data();
    }
    op_.attrs = attrs_.data();
    if (from.expr) copy_expr(*from.expr);
  }
  OwnedOp(const OwnedOp&) = delete;
  OwnedOp& operator=(const OwnedOp&) = delete;

  const orr_op& get() const { return op_; }

 private:
  const char* keep(const char* text) { return text ? texts_.emplace_back(text).c_str() : nullptr; }

  void copy_expr(const orr_expr& from) {
    expr_ = from;
    instrs_.assign(from.instrs, from.instrs + from.n_instrs);
    outputs_.assign(from.outputs, from.outputs + from.n_outputs);
    expr_.instrs = instrs_.data();
    expr_.outputs = outputs_.data();
    op_.expr = &expr_;
  }

  orr_op op_;
  orr_expr expr_{};
  std::vector<orr_tensor> in_, out_;
  std::vector<orr_attr> attrs_;
  std::vector<orr_instr> instrs_;
  std::vector<int32_t> outputs_;
  std::deque<std::string> texts_;  // a deque: addresses stay
  std::deque<std::vector<int64_t>> lists_;
};

}  // namespace reference
