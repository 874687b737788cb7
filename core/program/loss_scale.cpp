// SPDX-License-Identifier: Apache-2.0
#include "program/loss_scale.h"

#include "program/state.h"

namespace orrery {
namespace {

constexpr double kLargest = 0x1p24;

std::shared_ptr<State> scalar_state(const std::string& name, int32_t dtype, double value) {
  auto s = std::make_shared<State>();
  s->name = name, s->type = {dtype, {}}, s->role = Role::state;
  s->initial = Initial::of_constant(value);
  return s;
}

// A mean over the batch is known when this asks for it.
ValueId known(Program& p, ValueId v) {
  return p.value(v).batch == Batch::none ? v : p.add1("total", {v});
}

}  // namespace

LossScale::LossScale(const LossScaling& how)
    : growth_interval_(how.growth_interval),
      scale_(scalar_state("precision.loss_scale", ORR_F32, how.initial)),
      good_(scalar_state("precision.good_steps", ORR_I64, 0)),
      skipped_(scalar_state("precision.skipped_steps", ORR_I64, 0)) {}

void LossScale::guard(Program& p, ValueId loss, ValueId squared_norm) const {
  ValueId finite = p.pointwise(ORR_FN_ISFINITE, {known(p, loss)});
  if (squared_norm != kNone)
    finite = p.pointwise(ORR_FN_AND, {finite, p.pointwise(ORR_FN_ISFINITE, {squared_norm})});
  const auto updates = p.updates();
  for (auto& [state, next] : updates)
    p.update(state, p.pointwise(ORR_FN_SELECT, {finite, known(p, next), state}));
  p.output("loss_scale",
           p.pointwise(ORR_FN_INPUT, {value(p)}));  // a copy: the state changes in place
  if (growth_interval_ > 0) adapt(p, finite);
  ValueId skipped = p.state_value(skipped_),
          one_more = p.pointwise(ORR_FN_ADD, {skipped, Operand::number(1)});
  ValueId now = p.pointwise(ORR_FN_SELECT, {finite, skipped, one_more});
  p.output("skipped_steps", now);
  p.update(skipped, now);
}

// Half after a step that was taken back, double after so many good ones since the last change.
void LossScale::adapt(Program& p, ValueId finite) const {
  ValueId scale = value(p), good = p.state_value(good_);
  ValueId twice = p.pointwise(ORR_FN_MUL, {scale, Operand::number(2)});
  ValueId up = p.pointwise(ORR_FN_MIN, {twice, Operand::number(kLargest)});
  ValueId half = p.pointwise(ORR_FN_MUL, {scale, Operand::number(0.5)});
  ValueId down = p.pointwise(ORR_FN_MAX, {half, Operand::number(1 / kLargest)});
  ValueId count = p.pointwise(ORR_FN_ADD, {good, Operand::number(1)});
  ValueId enough =
      p.pointwise(ORR_FN_GE, {count, Operand::number(static_cast<double>(growth_interval_))});
  ValueId after_good = p.pointwise(ORR_FN_SELECT, {enough, up, scale});
  p.update(scale, p.pointwise(ORR_FN_SELECT, {finite, after_good, down}));
  ValueId zero = p.constant(0, ORR_I64);
  p.update(good, p.pointwise(ORR_FN_SELECT,
                             {finite, p.pointwise(ORR_FN_SELECT, {enough, zero, count}), zero}));
}

}  // namespace orrery
