// SPDX-License-Identifier: Apache-2.0
#include "loss_scale.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace precision {
namespace {

orr::Value scale_of(const orr::Program& p, const LossScale& how) {
  return p.state({.name = "loss_scale",
                  .init = ORR_INIT_CONSTANT,
                  .value = how.initial,
                  .dtype = ORR_F32,
                  .dims = std::vector<int64_t>{}});
}

orr::Value counter(const orr::Program& p, const char* name) {
  return p.state({.name = name, .dtype = ORR_I64, .dims = std::vector<int64_t>{}});
}

// Returns v as a number of the whole step. A sum or mean over the batch is completed over the ranks
// first.
orr::Value known(const orr::Program& p, orr::Value v) {
  return p.info(v).batch == ORR_BATCH_NONE ? v : p.op("total", {v});
}

orr::Value choice(orr::Value condition, orr::Operand yes, orr::Operand no) {
  return condition.in->pointwise(ORR_FN_SELECT, {condition, yes, no});
}

// Returns each parameter and state that the step updates, with its new value, in the order in which
// the new values are computed.
std::vector<std::pair<orr::Value, orr::Value>> updates_of(const orr::Program& p) {
  std::vector<std::pair<orr::Value, orr::Value>> updates;
  p.each(1u << ORR_ROLE_PARAM | 1u << ORR_ROLE_STATE, [&](orr::Value v, const orr_value_info&) {
    if (const orr::Value next = p.updated(v); next != v) updates.emplace_back(v, next);
  });
  std::stable_sort(updates.begin(), updates.end(), [&](const auto& a, const auto& b) {
    return p.info(a.second).op < p.info(b.second).op;
  });
  return updates;
}

// Halves the scale after a step that was taken back. Doubles it after `growth_interval` good steps
// since it last changed.
void adapt(const orr::Program& p, const LossScale& how, orr::Value scale, orr::Value good,
           orr::Value finite) {
  const orr::Value up = p.pointwise(ORR_FN_MIN, {scale * 2.0, kLargestScale});
  const orr::Value down = p.pointwise(ORR_FN_MAX, {scale * 0.5, 1 / kLargestScale});
  const orr::Value count = good + 1.0;
  const orr::Value enough =
      p.pointwise(ORR_FN_GE, {count, static_cast<double>(how.growth_interval)});
  p.update(scale, choice(finite, choice(enough, up, scale), down));
  const orr::Value zero = p.constant(0, ORR_I64);
  p.update(good, choice(finite, choice(enough, zero, count), zero));
}

void guard(const orr::Program& p, const LossScale& how, orr::Value loss, orr::Value norm) {
  orr::Value finite = p.pointwise(ORR_FN_ISFINITE, {known(p, loss)});
  if (norm.exists())
    finite = p.pointwise(ORR_FN_AND, {finite, p.pointwise(ORR_FN_ISFINITE, {norm})});
  for (auto& [state, next] : updates_of(p)) p.update(state, choice(finite, known(p, next), state));
  const orr::Value scale = scale_of(p, how);
  p.output("loss_scale", p.same(scale));  // a copy, because the state changes in place
  if (how.growth_interval > 0) adapt(p, how, scale, counter(p, "good_steps"), finite);
  const orr::Value skipped = counter(p, "skipped_steps"),
                   now = choice(finite, skipped, skipped + 1.0);
  p.output("skipped_steps", now);
  p.update(skipped, now);
}

}  // namespace

void scale_loss(const orr::Program& p, const LossScale& how) { p.cotangent(scale_of(p, how)); }

void guard_updates(const orr::Program& p, const LossScale& how) {
  if (how.growth_interval > 0) counter(p, "good_steps");
  counter(p, "skipped_steps");
  p.complete("loss scale", [how](const orr::Program& step, orr::Value loss, orr::Value norm) {
    guard(step, how, loss, norm);
  });
}

}  // namespace precision
