// SPDX-License-Identifier: Apache-2.0
//
// A launch as the ABI's orr_op, with the arrays that it points to.
#pragma once

#include <string>
#include <vector>

#include "lower/rank_plan.h"

namespace orrery {

// Of a name and an attribute that outlive it.
orr_attr abi_attr(const std::string& name, const Attr& attr);
// Of an expression that outlives it.
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
