// SPDX-License-Identifier: Apache-2.0
#include "plan/layouts.h"

#include <algorithm>

#include "lower/lower.h"
#include "program/op.h"
#include "program/state.h"

namespace orrery {
namespace {

constexpr const char* kPhases[] = {"forward", "backward", "update"};

// Of a state and of a result that is not flat, the whole.
Type shown_type(const Value& v) {
  const auto& all = v.layout.placements();
  const bool flat = std::any_of(all.begin(), all.end(), [](const Layout::On& on) {
    return on.second.kind == Placement::flat;
  });
  return v.state ? v.state->type : flat ? v.type : whole_type(v.type, v.layout);
}

Json value_json(const Value& v) {
  return {{"type", to_string(shown_type(v))}, {"layout", to_string(v.layout)}};
}

// Whether the rank has some of the state: it is not owned by other coordinates.
bool is_here(const Layout& layout, const Mesh& mesh, int rank) {
  const auto& all = layout.placements();
  return std::none_of(all.begin(), all.end(), [&](const Layout::On& on) {
    const auto& [axis, how] = on;
    return how.kind == Placement::owned &&
           !std::count(how.at.begin(), how.at.end(), mesh.coordinate(axis, rank));
  });
}

// Views lie as what they show, and single numbers, as those of an update, are many.
bool shows(const Program& p, const Op& op) {
  if (is_exchange(op.kind)) return true;
  return op_def(op.kind).form && !p.type(op.out[0]).dims.empty();
}

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
    if (!v.state || !is_here(v.layout, b.mesh, rank)) continue;
    Json json = value_json(v);
    json["name"] = v.state->name;
    states.push_back(std::move(json));
  }
  for (const Op& op : program->ops())
    if (shows(*program, op)) ops.push_back(op_json(*program, op));
  return {{"rank", rank},
          {"axes", axes},
          {"batch_axis", b.mesh.batch_axis},
          {"microbatches", b.microbatches},
          {"states", states},
          {"ops", ops}};
}

}  // namespace orrery
