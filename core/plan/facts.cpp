// SPDX-License-Identifier: Apache-2.0
#include "plan/facts.h"

#include <orrery/sdk/path.hpp>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

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

// What a pipeline divides: the elements of the model's longest list of modules.
struct Elements {
  size_t count = 1;
  double share = 1;  // of the FLOPs of products
};

Elements elements(const Program& p) {
  struct List {
    std::set<long> numbers;
    double flops = 0;
  };
  std::map<std::string, List> lists;
  double all = 0;
  for (const Op& op : p.ops()) {
    if (op.phase == Phase::update) continue;
    const std::vector<std::string> parts =
        orr::path::cut(orr::path::inside(op.site.region.str()), '.');
    const double flops =
        is_product(p, op) ? op_def(op.kind).cost(args_of(p, op), out_types(p, op)).flops : 0;
    all += flops;
    long number = 0;
    if (parts.size() < 2 || !orr::path::whole_number(parts[1], number)) continue;
    List& list = lists[parts[0]];
    list.numbers.insert(number), list.flops += flops;
  }
  Elements most;
  for (auto& [name, list] : lists)
    if (list.numbers.size() > most.count && list.flops > 0)
      most = {list.numbers.size(), list.flops / all};
  return most;
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
  const Elements list = elements(p);
  return {{"ranks", source.world},
          {"samples", p.batch_size()},
          {"product_flops", product_flops(p)},
          {"product_bytes", product_bytes(p)},
          {"product_rate", product_rate(machine)},
          {"parameter_bytes", bytes_of(p, Role::param)},
          {"state_bytes", bytes_of(p, Role::state)},
          {"elements", list.count},
          {"elements_share", list.share},
          {"memory_bytes", machine.memory_bytes},
          {"figures", machine.figures},
          {"memory_bandwidth", machine.memory_bandwidth},
          {"ranks_per_host", machine.ranks_per_host},
          {"inside", machine.inside.bandwidth},
          {"between", machine.between.bandwidth},
          {"host", machine.host.bandwidth}};
}

}  // namespace orrery
