// SPDX-License-Identifier: Apache-2.0
#include "plan/planned.h"

#include <algorithm>
#include <utility>

#include "base/in_parallel.h"
#include "lower/lower.h"
#include "plan/machine_model.h"
#include "plan/memory.h"
#include "plan/traffic.h"
#include "program/op.h"

namespace orrery {
namespace {

void add_compute(PlannedRanks& made, const RankPlan& plan, const Machine& machine) {
  for (const Step& s : plan.schedule) {
    if (s.kind != Step::launch) continue;
    const Launch& l = plan.launches[static_cast<size_t>(s.index)];
    const double seconds = machine.seconds(l) - machine.launch_seconds;
    const char* bound = machine.is_bound_by_memory(l) ? "memory"
                        : l.cost.matrix               ? "products"
                                                      : "arithmetic";
    made.compute["launches"] += machine.launch_seconds;
    made.compute[bound] += seconds;
    if (l.cost.matrix) made.product_flops[rate_name(l.in.front().dtype)] += l.cost.flops;
  }
}

PlannedRanks planned(const RankPlan& plan, const std::vector<int>& ranks, const Machine& machine) {
  PlannedRanks made{ranks, plan.bytes(), memory_parts(plan), peak_by_category(plan), {}, {}, {}, {},
                    {}};
  for (auto& [index, n] : times_posted(plan)) {
    const Exchange& e = plan.exchanges[static_cast<size_t>(index)];
    if (!e.is_copy()) made.sent[e.axis] += e.bytes_sent * static_cast<uint64_t>(n);
  }
  add_compute(made, plan, machine);
  return made;
}

// All ranks end when the slowest has ended, which computes longer by this share.
void wait_for_slowest(std::vector<Spent>& spent, double share) {
  double most = 0;
  for (const Spent& one : spent) most = std::max(most, one.compute);
  for (Spent& one : spent) one.step += share * most;
}

}  // namespace

uint64_t PlannedStep::peak() const {
  uint64_t most = 0;
  for (const PlannedRanks& kind : kinds) most = std::max(most, kind.bytes);
  return most;
}

PlannedStep plan_step(const Blueprint& b, const std::vector<std::string>& kernels,
                      const Machine& machine, ShardSizes sizes, const DescribeRanks& describe) {
  const RankKinds kinds(b, sizes);
  const auto& groups = kinds.planned_together();
  using Made = std::vector<std::pair<PlannedRanks, Timeline>>;
  std::vector<Made> by_group = in_parallel<Made>(groups.size(), [&](size_t g) {
    RankPlan plan = lower(kinds.request(groups[g].front(), kernels));
    Made made;
    for (size_t kind : groups[g]) {
      const std::vector<int>& ranks = kinds.alike()[kind];
      turn_into(plan, kinds.planned_rank(kind));
      made.emplace_back(planned(plan, ranks, machine), timeline_of(plan, kinds, machine));
      for (auto& [category, bytes] : parts_of_rounds(b, plan, kernels)) {
        made.back().first.parts[category] += bytes;
        made.back().first.bytes += bytes;
      }
      if (describe) made.back().first.details = describe(plan, ranks);
    }
    return made;
  });
  PlannedStep step;
  step.kinds.resize(kinds.alike().size());
  std::vector<Timeline> timelines(step.kinds.size());
  for (size_t g = 0; g < groups.size(); ++g)
    for (size_t i = 0; i < groups[g].size(); ++i)
      std::tie(step.kinds[groups[g][i]], timelines[groups[g][i]]) = std::move(by_group[g][i]);
  std::vector<Spent> spent = simulate(timelines);
  wait_for_slowest(spent, machine.slowest(b.mesh.world));
  for (size_t k = 0; k < spent.size(); ++k) step.kinds[k].spent = spent[k];
  step.seconds = spent.front().step;
  return step;
}

bool is_product(const Program& p, const Op& op) {
  const auto& cost = op_def(op.kind).cost;
  return cost && cost(args_of(p, op), out_types(p, op)).matrix;
}

double convention_flops(const Program& p) {
  double attention = 0, counted = 0;
  for (const Op& op : p.ops()) {
    if (op.kind != "attention" && op.kind != "attention_grad") continue;
    counted += op_def(op.kind).cost(args_of(p, op), out_types(p, op)).flops;
    if (op.kind == "attention_grad") continue;
    const Dims &q = p.type(op.in[0]).dims, &k = p.type(op.in[1]).dims;
    attention += 3 * 2 * 2.0 * static_cast<double>(q[0] * q[1] * q[2] * k[1]);
  }
  return product_flops(p) - counted + attention;
}

double product_flops(const Program& p) {
  double flops = 0;
  for (const Op& op : p.ops())
    if (op.phase != Phase::update && is_product(p, op))
      flops += op_def(op.kind).cost(args_of(p, op), out_types(p, op)).flops;
  return flops;
}

}  // namespace orrery
