// SPDX-License-Identifier: Apache-2.0
#include "plan/ops.h"

#include <nlohmann/json.hpp>
#include <set>

#include "lower/abi_op.h"

namespace orrery {
namespace {

using Json = nlohmann::json;

Json tensors_json(const orr_tensor* tensors, int32_t n) {
  Json all = Json::array();
  for (int32_t i = 0; i < n; ++i) {
    const orr_tensor& t = tensors[i];
    all.push_back({{"dtype", t.dtype},
                   {"dims", Dims(t.dims, t.dims + t.rank)},
                   {"strides", Dims(t.strides, t.strides + t.rank)}});
  }
  return all;
}

Json attrs_json(const orr_op& op) {
  Json all = Json::object();
  for (int32_t i = 0; i < op.n_attrs; ++i) {
    const orr_attr& a = op.attrs[i];
    if (a.type == ORR_ATTR_INT) all[a.name] = a.i;
    if (a.type == ORR_ATTR_REAL) all[a.name] = a.f;
    if (a.type == ORR_ATTR_TEXT) all[a.name] = a.text;
  }
  return all;
}

Json op_json(const orr_op& op) {
  Json json = {{"kind", op.kind},
               {"in", tensors_json(op.in, op.n_in)},
               {"out", tensors_json(op.out, op.n_out)},
               {"attrs", attrs_json(op)}};
  if (!op.expr) return json;
  json["instrs"] = Json::array();
  for (int32_t i = 0; i < op.expr->n_instrs; ++i) {
    const orr_instr& e = op.expr->instrs[i];
    json["instrs"].push_back({e.fn, e.dtype, e.a, e.b, e.c, e.imm});
  }
  json["stored"] = std::vector<int32_t>(op.expr->outputs, op.expr->outputs + op.expr->n_outputs);
  return json;
}

}  // namespace

std::string ops_json(const RankPlan& plan) {
  std::set<Json> seen;
  Json all = Json::array();
  for (const Launch& launch : plan.launches) {
    const AbiOp op(launch);
    Json json = op_json(*op.get());
    if (!seen.insert(json).second) continue;
    json["where"] = op.get()->where, json["flops"] = launch.cost.flops;
    all.push_back(std::move(json));
  }
  return all.dump();
}

}  // namespace orrery
