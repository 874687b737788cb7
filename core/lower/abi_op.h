// SPDX-License-Identifier: Apache-2.0
//
// Converts a launch to the orr_op that a kernel plugin gets, and owns the arrays it points to.
#pragma once

#include <string>
#include <vector>

#include "lower/rank_plan.h"

namespace orrery {

// REQUIRES: name and attribute outlive the result.
orr_attr abi_attr(const std::string& name, const Attr& attr);
// REQUIRES: the expression outlives the result.
orr_expr abi_expr(const Expr& expr);

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
  orr_op op_{};
};

}  // namespace orrery
