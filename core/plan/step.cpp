// SPDX-License-Identifier: Apache-2.0
#include "plan/step.h"

#include <algorithm>
#include <utility>

#include "lower/lower.h"
#include "plan/figures.h"
#include "plan/ledger.h"
#include "plan/memory.h"
#include "plan/ops.h"
#include "plan/schedule.h"
#include "plan/traffic.h"

namespace orrery {
namespace {

Json parts_json(const std::vector<TimePart>& parts) {
  Json all = Json::array();
  for (const TimePart& part : parts) {
    Json one = {{"what", part.what}, {"share", part.share}};
    if (!part.axis.empty()) one["axis"] = part.axis;
    all.push_back(std::move(one));
  }
  return all;
}

// The number of tokens in a batch: the elements of the first batch field that has an integer for
// each position of each sample.
int64_t tokens(const Program& p) {
  for (const Value& v : p.values()) {
    const bool whole = v.type.dtype == ORR_I32 || v.type.dtype == ORR_I64;
    if (v.role == Role::batch && whole && v.type.dims.size() == 2) return v.type.elements();
  }
  return 0;
}

// Periodic programs, which are not part of a step.
Json periodic_json(const PlanSource& source, const Blueprint& b, const std::vector<int>& ranks) {
  Json all = Json::array();
  for (const Periodic& one : b.asked.periodic)
    for (size_t round = 0; round < one.rounds.size(); ++round) {
      const Mesh mesh = mesh_of_periodic(b.mesh);
      const RankPlan plan =
          lower({one.rounds[round].get(), &mesh, b.microbatches, ranks.front(), source.kernels});
      all.push_back({{"strategy", one.origin},
                     {"every", one.every},
                     {"round", round + 1},
                     {"rounds", one.rounds.size()},
                     {"memory_bytes", plan.arena_bytes + plan.comm_bytes},
                     {"traffic", traffic_json(plan, ranks, source.stack)}});
    }
  return all;
}

// What is told of ranks beside their figures. [any thread]
Json details_json(const PlanSource& source, const Blueprint& b, const RankPlan& plan,
                  const std::vector<int>& ranks) {
  return {{"outside_bytes", plan.outside},
          {"away", away_json(plan)},
          {"ledger", ledger_json(plan)},
          {"traffic", traffic_json(plan, ranks, source.stack)},
          {"launches", launches_json(plan, source.kernels)},
          {"periodic", periodic_json(source, b, ranks)}};
}

Json kind_json(PlannedRanks& kind, const Mesh& mesh) {
  Json json = std::move(kind.details);
  json.update({{"ranks", runs_json(kind.ranks)},
               {"compute_seconds", kind.spent.compute},
               {"exposed_seconds", kind.spent.exposed},
               {"idle_seconds", kind.spent.idle()},
               {"time", parts_json(time_parts(kind, mesh))},
               {"memory_bytes", kind.bytes},
               {"product_flops", kind.product_flops},
               {"memory", kind.parts},
               {"arena", kind.arena},
               {"sent_bytes", kind.sent}});
  return json;
}

Json whole_json(const PlannedStep& step, const Figures& figures) {
  Json json = {{"step_seconds", step.seconds},
               {"model_flops", figures.model_flops},
               {"model_flops_per_second", figures.model_flops / step.seconds},
               {"mfu", figures.mfu},
               {"peak_bytes", step.peak()},
               {"time", parts_json(figures.parts)},
               {"bottleneck", bottleneck(figures)}};
  if (figures.nominal_mfu) json["nominal_mfu"] = figures.nominal_mfu;
  return json;
}

// What only texts say of the machine.
Json machine_json(const Machine& machine) {
  Json json = {{"figures", machine.figures}};
  if (!machine.about.empty()) json["about"] = machine.about;
  if (!machine.frameworks.empty()) json["frameworks"] = machine.frameworks;
  return json;
}

Json mesh_json(const Mesh& mesh) {
  Json axes = Json::array();
  for (const Axis& axis : mesh.axes)
    axes.push_back({{"axis", axis.name}, {"size", axis.size}, {"strategy", axis.strategy}});
  return axes;
}

// Where an axis is not the innermost and crosses hosts, though one host has room for its ranks, and
// compute waits for it: what the step would take with the axis innermost.
Json order_json(const PlanSource& source, const Blueprint& b, const PlannedStep& step,
                const Figures& figures, const Machine& machine) {
  for (const TimePart& part : figures.parts) {
    const int size = b.mesh.size_of(part.axis);
    auto at = std::find_if(b.mesh.axes.begin(), b.mesh.axes.end(),
                           [&](const Axis& axis) { return axis.name == part.axis; });
    if (part.what != "exposed" || part.share < 0.05 || at == b.mesh.axes.end()) continue;
    if (at + 1 == b.mesh.axes.end() || machine.ranks_per_host % size != 0) continue;
    if (!machine.spans_hosts(b.mesh, part.axis, 0)) continue;
    Blueprint moved = b;
    auto& axes = moved.mesh.axes;
    const auto from = axes.begin() + (at - b.mesh.axes.begin());
    std::rotate(from, from + 1, axes.end());
    const double seconds = plan_step(moved, source.kernels, machine).seconds;
    if (seconds < step.seconds)
      return {{"axis", part.axis}, {"strategy", at->strategy}, {"step_seconds", seconds}};
  }
  return {};
}

}  // namespace

Json layout_json(const PlanSource& source, const Blueprint& b, const Machine& machine,
                 double model_flops, ShardSizes sizes) {
  const PlannedStep step = plan_step(b, source.kernels, machine, sizes);
  return whole_json(step, figures_of(step, b, machine, model_flops));
}

Json step_json(const PlanSource& source, const Blueprint& b, const Machine& machine) {
  const Program model = source.build({}, 1, 0).program;
  const double model_flops = product_flops(model);
  PlannedStep step = plan_step(b, source.kernels, machine, ShardSizes::exact,
                               [&](const RankPlan& plan, const std::vector<int>& ranks) {
                                 return details_json(source, b, plan, ranks);
                               });
  const Figures figures = figures_of(step, b, machine, model_flops, convention_flops(model));
  Json json = whole_json(step, figures);
  json.update({{"ranks", b.mesh.world},
               {"mesh", mesh_json(b.mesh)},
               {"samples", b.program.batch_size()},
               {"microbatches", b.microbatches},
               {"machine", machine.name},
               {"checkpoint_bytes", checkpoint_bytes(b)},
               {"remarks", b.asked.remarks},
               {"kinds", Json::array()}});
  if (machine.memory_bytes) json["machine_memory_bytes"] = machine.memory_bytes;
  if (!machine.about.empty() || !machine.figures.empty() || !machine.frameworks.empty())
    json["machine_says"] = machine_json(machine);
  if (const int64_t n = tokens(b.program)) json["tokens"] = n;
  if (!b.mesh.schedule.axis.empty()) json["schedule"] = schedule_json(b);
  if (Json order = order_json(source, b, step, figures, machine); !order.is_null())
    json["order"] = std::move(order);
  for (PlannedRanks& kind : step.kinds) json["kinds"].push_back(kind_json(kind, b.mesh));
  return json;
}

}  // namespace orrery
