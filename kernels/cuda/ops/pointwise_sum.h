// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "column_sums.h"

namespace orr_cuda {

// The expression of a pointwise_sum alone. Stays where it is.
struct Summed {
  explicit Summed(const orr_op& both);  // throws Unsupported
  Summed(const Summed&) = delete;

  orr_op op;
  orr_tensor made{};
};

// Of a pointwise_sum. Throws Unsupported if it has other shapes. Pure.
FoldPlan summed_plan(const orr_op& op);

// Throws Unsupported if the plugin has no kernel for the pointwise_sum.
void require_summed(const orr_op& op);

}  // namespace orr_cuda
