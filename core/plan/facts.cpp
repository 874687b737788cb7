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

// How many elements the model's longest list of modules has, else how many modules it has: what a
// pipeline divides.
size_t elements(const Program& p) {
  std::set<std::string> modules;
  std::map<std::string, std::set<long>> lists;
  for (const Op& op : p.ops()) {
    const std::vector<std::string> parts =
        orr::path::cut(orr::path::inside(op.site.region.str()), '.');
    long number = 0;
    if (!parts.empty()) modules.insert(parts[0]);
    if (parts.size() > 1 && orr::path::whole_number(parts[1], number))
      lists[parts[0]].insert(number);
  }
  size_t most = 0;
  for (auto& [name, numbers] : lists) most = std::max(most, numbers.size());
  return most > 1 ? most : modules.size();
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
          {"elements", elements(p)},
          {"memory_bytes", machine.memory_bytes},
          {"figures", machine.figures},
          {"memory_bandwidth", machine.memory_bandwidth},
          {"ranks_per_host", machine.ranks_per_host},
          {"inside", machine.inside.bandwidth},
          {"between", machine.between.bandwidth},
          {"host", machine.host.bandwidth}};
}

}  // namespace orrery
