// SPDX-License-Identifier: Apache-2.0
//
// Multiplies the loss by a scale, so that gradients in 16 bits do not vanish, and takes back steps
// whose gradients overflow (Micikevicius et al., "Mixed Precision Training", ICLR 2018).
#pragma once

#include <orrery/sdk/program.hpp>

namespace precision {

constexpr double kLargestScale = 0x1p24;  // the smallest is its reciprocal

// Scales are powers of two, so that without overflow a scaled step gives the bits of an unscaled
// one.
struct LossScale {
  double initial = 0;           // 0: none
  int64_t growth_interval = 0;  // good steps before the scale doubles; 0: it never changes
};

// Multiplies the loss by the scale, which is a state of the run. Must run before differentiation.
void scale_loss(const orr::Program& program, const LossScale& how);

// Lets a step change nothing but the scale if the loss or the squared norm of all gradients is not
// finite. Every update then chooses between old and new value, the same on every rank. The step
// gets the results "loss_scale" and "skipped_steps".
void guard_updates(const orr::Program& program, const LossScale& how);

}  // namespace precision
