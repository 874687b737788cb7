// SPDX-License-Identifier: Apache-2.0
#include "plan/json.h"

#include <nlohmann/json.hpp>

namespace orrery {
namespace {

using Json = nlohmann::json;

// The ranks as runs [first, last].
Json runs_json(const std::vector<int>& ranks) {
  Json runs = Json::array();
  for (int rank : ranks) {
    if (runs.empty() || runs.back()[1] != rank - 1) runs.push_back({rank, rank});
    runs.back()[1] = rank;
  }
  return runs;
}

Json parts_json(const std::vector<TimePart>& parts) {
  Json all = Json::array();
  for (const TimePart& part : parts) {
    Json one = {{"what", part.what}, {"share", part.share}};
    if (!part.axis.empty()) one["axis"] = part.axis;
    all.push_back(std::move(one));
  }
  return all;
}

Json ranks_json(const PlannedRanks& kind, const Mesh& mesh) {
  return {{"ranks", runs_json(kind.ranks)},
          {"compute_seconds", kind.spent.compute},
          {"exposed_seconds", kind.spent.exposed},
          {"idle_seconds", kind.spent.idle()},
          {"time", parts_json(time_parts(kind, mesh))},
          {"memory_bytes", kind.bytes},
          {"memory", kind.parts},
          {"arena", kind.arena},
          {"sent_bytes", kind.sent}};
}

}  // namespace

std::string plan_json(const Blueprint& b, const PlannedStep& step, const Figures& figures,
                      const Machine& machine) {
  Json json = {{"ranks", b.mesh.world},
               {"mesh", Json::array()},
               {"samples", b.program.batch_size()},
               {"microbatches", b.microbatches},
               {"machine", machine.name},
               {"step_seconds", step.seconds},
               {"model_flops", figures.model_flops},
               {"model_flops_per_second", figures.model_flops / step.seconds},
               {"mfu", figures.mfu},
               {"peak_bytes", step.peak()},
               {"time", parts_json(figures.parts)},
               {"bottleneck", advice(figures)},
               {"kinds", Json::array()}};
  for (const Axis& axis : b.mesh.axes)
    json["mesh"].push_back({{"axis", axis.name}, {"size", axis.size}, {"strategy", axis.strategy}});
  for (const PlannedRanks& kind : step.kinds) json["kinds"].push_back(ranks_json(kind, b.mesh));
  return json.dump(1) + "\n";
}

}  // namespace orrery
