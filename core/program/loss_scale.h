// SPDX-License-Identifier: Apache-2.0
//
// Gradients of a multiple of the loss, so that 16-bit values do not vanish, and steps that are
// taken back when they overflow (Micikevicius et al., "Mixed Precision Training", ICLR 2018). All
// L1.
#pragma once

#include <memory>

#include "program/program.h"

namespace orrery {

// What a strategy asks for. Powers of two: with no overflow a scaled step has the bits of one that
// is not.
struct LossScaling {
  double initial = 0;           // 0: none
  int64_t growth_interval = 0;  // good steps before it doubles; 0: it stays what it is
};

// The scale of one run, over all of its programs. It stays between 2^-24 and 2^24.
class LossScale {
 public:
  explicit LossScale(const LossScaling& how);

  // What multiplies the gradients of this step: f32.
  ValueId value(Program& p) const { return p.state_value(scale_); }

  // Makes the step one that changes nothing but the scale unless the loss and the squared norm of
  // all gradients are finite: a choice in every update, the same on every rank. Declares the
  // outputs "loss_scale" and "skipped_steps". REQUIRES: all updates are declared; phase update.
  void guard(Program& p, ValueId loss, ValueId squared_norm) const;

 private:
  void adapt(Program& p, ValueId finite) const;

  int64_t growth_interval_;
  std::shared_ptr<State> scale_, good_, skipped_;
};

}  // namespace orrery
