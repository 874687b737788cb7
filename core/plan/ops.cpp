// SPDX-License-Identifier: Apache-2.0
#include "plan/ops.h"

#include <map>
#include <set>
#include <tuple>

#include "lower/abi_op.h"
#include "lower/kernel_choice.h"

namespace orrery {
namespace {

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

Json launches_json(const RankPlan& plan, const std::vector<std::string>& kernels) {
  std::vector<int64_t> times(plan.launches.size());
  for (const Step& s : plan.schedule)
    if (s.kind == Step::launch) ++times[static_cast<size_t>(s.index)];
  struct Sum {
    int64_t launches = 0;
    double flops = 0, bytes = 0;
  };
  std::map<std::tuple<std::string, int, int>, Sum> sums;  // by kind, plugin and score
  const KernelChoice choice(kernels);
  for (size_t i = 0; i < times.size(); ++i) {
    const Launch& l = plan.launches[i];
    Sum& sum = sums[{shown_kind(l.op), l.kernels, choice.best(l).score}];
    const auto n = static_cast<double>(times[i]);
    sum.launches += times[i], sum.flops += n * l.cost.flops, sum.bytes += n * l.cost.bytes;
  }
  Json all = Json::array();
  for (const auto& [by, sum] : sums) {
    const auto& [kind, plugin, score] = by;
    all.push_back({{"kind", kind},
                   {"kernels", kernels[static_cast<size_t>(plugin)]},
                   {"score", score},
                   {"launches", sum.launches},
                   {"flops", sum.flops},
                   {"bytes", sum.bytes}});
  }
  return all;
}

}  // namespace orrery
