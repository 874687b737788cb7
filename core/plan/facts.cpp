// SPDX-License-Identifier: Apache-2.0
#include "plan/facts.h"

#include <algorithm>

#include "plan/planned.h"
#include "program/op.h"

namespace orrery {
namespace {

double bytes_of(const Program& p, Role role) {
  double bytes = 0;
  for (const Value& v : p.values())
    if (v.role == role) bytes += static_cast<double>(v.type.bytes());
  return bytes;
}

// Of the results of products in forward, for the whole batch.
double product_bytes(const Program& p) {
  double bytes = 0;
  for (const Op& op : p.ops())
    if (op.phase == Phase::forward && is_product(p, op))
      for (ValueId v : op.out) bytes += static_cast<double>(p.type(v).bytes());
  return bytes;
}

// FLOP/s in products: the best of any dtype.
double product_rate(const Machine& machine) {
  double best = 0;
  for (const auto* rates : {&machine.matrix_flops, &machine.attention_flops})
    for (auto& [dtype, rate] : *rates) best = std::max(best, rate.highest());
  return best;
}

}  // namespace

Json facts_json(const PlanSource& source, const Machine& machine) {
  const Program p = source.build({}, 1, 0).program;
  return {{"ranks", source.world},
          {"samples", p.batch_size()},
          {"product_flops", product_flops(p)},
          {"product_bytes", product_bytes(p)},
          {"product_rate", product_rate(machine)},
          {"parameter_bytes", bytes_of(p, Role::param)},
          {"state_bytes", bytes_of(p, Role::state)},
          {"memory_bytes", machine.memory_bytes},
          {"ranks_per_host", machine.ranks_per_host},
          {"inside", machine.inside.bandwidth},
          {"between", machine.between.bandwidth},
          {"host", machine.host.bandwidth}};
}

}  // namespace orrery
