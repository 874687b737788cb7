// SPDX-License-Identifier: Apache-2.0
#include "plan/layouts.h"

#include <algorithm>

#include "plan/text.h"
#include "program/op.h"

namespace orrery {

ModelFacts model_facts(const PlanSource& source) {
  const Program p = source.build({}, 1, 0).program;
  ModelFacts facts;
  facts.machine = machine_of(plan_options().machine);
  for (const auto* rates : {&facts.machine.matrix_flops, &facts.machine.attention_flops})
    for (auto& [dtype, rate] : *rates)
      facts.product_rate = std::max(facts.product_rate, rate.highest());
  facts.product_flops = product_flops(p);
  facts.samples = p.batch_size();
  for (const Op& op : p.ops())
    if (op.phase == Phase::forward && is_product(p, op))
      for (ValueId v : op.out) facts.product_bytes += static_cast<double>(p.type(v).bytes());
  for (const Value& v : p.values()) {
    const auto bytes = static_cast<double>(v.type.bytes());
    if (v.role == Role::param) facts.parameter_bytes += bytes;
    if (v.role == Role::state) facts.state_bytes += bytes;
  }
  return facts;
}

Trial try_layout(const PlanSource& source, const std::vector<StrategyUse>& stack,
                 int64_t microbatches, const Machine& machine, double model_flops) {
  const Blueprint b = source.build(stack, source.world, microbatches);
  const PlannedStep step = plan_step(b, source.kernels, machine);
  return {step.seconds, step.peak(), figures_of(step, b, machine, model_flops)};
}

}  // namespace orrery
