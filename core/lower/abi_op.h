// SPDX-License-Identifier: Apache-2.0
//
// Converts a launch to the orr_op that a kernel plugin gets, and owns the arrays it points to.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "lower/rank_plan.h"
#include "program/op_group.h"

namespace orrery {

// REQUIRES: name and attribute outlive the result.
orr_attr abi_attr(const std::string& name, const Attr& attr);
// REQUIRES: the expression outlives the result.
orr_expr abi_expr(const Expr& expr);

// A group of ops as plugins get it. REQUIRES: the group outlives this object.
class AbiGroup {
 public:
  // `calls`: by op, orr_group_op::call; none given: 0. `fused`: of a program, orr_group::fused.
  explicit AbiGroup(const OpGroup& group, const std::vector<int32_t>& calls = {},
                    bool fused = false);
  AbiGroup(const AbiGroup&) = delete;
  const orr_group* get() const { return &group_; }

 private:
  struct Member {
    std::string where;
    std::vector<orr_tensor> in, out;
    std::vector<orr_attr> attrs;
    orr_expr expr;
    orr_op op;
  };
  void add(const Op& op, const std::vector<Type>& types);

  std::deque<Member> members_;
  std::vector<orr_group_op> ops_;
  orr_group group_{};
};

// REQUIRES: the launch outlives this object.
class AbiOp {
 public:
  explicit AbiOp(const Launch& launch);
  AbiOp(const AbiOp&) = delete;
  AbiOp& operator=(const AbiOp&) = delete;
  const orr_op* get() const { return &op_; }

 private:
  std::string where_;
  std::vector<orr_attr> attrs_;
  orr_expr expr_{};
  std::unique_ptr<AbiGroup> group_;
  orr_op op_{};
};

}  // namespace orrery
