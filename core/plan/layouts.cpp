// SPDX-License-Identifier: Apache-2.0
#include "plan/layouts.h"

#include "lower/lower.h"
#include "program/op.h"
#include "program/state.h"

namespace orrery {
namespace {

constexpr const char* kPhases[] = {"forward", "backward", "update"};

Json value_json(const Value& v) {
  return {{"type", to_string(v.state ? v.state->type : whole_type(v.type, v.layout))},
          {"layout", to_string(v.layout)}};
}

bool shows(const Op& op) { return is_exchange(op.kind) || op_def(op.kind).form; }

Json op_json(const Program& p, const Op& op) {
  Json json = Json::object();
  if (!op.out.empty()) json = value_json(p.value(op.out[0]));
  json["phase"] = kPhases[static_cast<int>(op.phase)], json["kind"] = op.kind;
  json["region"] = op.site.region.str();
  if (is_exchange(op.kind)) json["over"] = attr_text(op.attrs, "axis", "");
  return json;
}

}  // namespace

Json layouts_json(const PlanSource& source, const Blueprint& b, int rank) {
  Json axes = Json::array(), states = Json::array(), ops = Json::array();
  for (const Axis& axis : b.mesh.axes) axes.push_back({{"name", axis.name}, {"size", axis.size}});
  const auto program =
      rank_program({&b.program, &b.mesh, b.microbatches, rank, source.kernels}, false);
  for (const Value& v : program->values()) {
    if (!v.state) continue;
    Json json = value_json(v);
    json["name"] = v.state->name;
    states.push_back(std::move(json));
  }
  for (const Op& op : program->ops())
    if (shows(op)) ops.push_back(op_json(*program, op));
  return {{"rank", rank},
          {"axes", axes},
          {"batch_axis", b.mesh.batch_axis},
          {"microbatches", b.microbatches},
          {"states", states},
          {"ops", ops}};
}

}  // namespace orrery
