// SPDX-License-Identifier: Apache-2.0
//
// Gradients of a multiple of the loss, so that 16-bit values do not vanish, and steps that are
// taken back when they overflow (Micikevicius et al., "Mixed Precision Training", ICLR 2018).
#pragma once

#include <orrery/sdk/program.hpp>

namespace precision {

constexpr double kLargestScale = 0x1p24;  // and its reciprocal the smallest

// Powers of two: with no overflow a scaled step has the bits of one that is not.
struct LossScale {
  double initial = 0;           // 0: none
  int64_t growth_interval = 0;  // good steps before it doubles; 0: it stays what it is
};

// Before differentiation: multiplies the loss by the scale, a state of the run.
void scale_loss(const orr::Program& program, const LossScale& how);

// Makes the step one that changes nothing but the scale unless the loss and the squared norm of all
// gradients are finite: a choice in every update, the same on every rank. Results: "loss_scale" and
// "skipped_steps".
void guard_updates(const orr::Program& program, const LossScale& how);

}  // namespace precision
