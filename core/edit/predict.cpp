// SPDX-License-Identifier: Apache-2.0
#include "edit/predict.h"

#include <orrery/sdk/traffic.hpp>

namespace orrery {
namespace {

orr_predict_query query_of(const RankPlan& plan, const Exchange& e, int rank) {
  orr_predict_query q{};
  q.size = sizeof q;
  q.axis_size = plan.mesh.size_of(e.axis), q.rank = plan.mesh.coordinate(e.axis, rank);
  q.op = e.op, q.element_bytes = orr_dtype_bytes(e.dtype);
  q.reduced_elements = static_cast<uint64_t>(e.count);
  q.reduced_bytes = q.reduced_elements * static_cast<uint64_t>(q.element_bytes);
  q.nodes = e.nodes;
  for (int r = 0; r < q.axis_size && !e.leaf_first.empty(); ++r)
    q.total_nodes += orr::traffic::nodes(e.descriptor(), r, q.axis_size);
  q.counts = e.counts.empty() ? nullptr : e.counts.data();
  return q;
}

}  // namespace

std::map<int, int64_t> times_posted(const RankPlan& plan) {
  std::map<int, int64_t> times;
  for (const Step& s : plan.schedule)
    if (s.kind == Step::post) ++times[s.index];
  return times;
}

std::vector<Prediction> predictions(const RankPlan& plan, const std::vector<StrategyUse>& stack,
                                    int rank) {
  std::vector<Prediction> found;
  std::map<int, int64_t> times = times_posted(plan);
  for (const StrategyUse& use : stack) {
    Prediction p{use.name};
    for (auto& [index, n] : times) {
      const Exchange& e = plan.exchanges[static_cast<size_t>(index)];
      if (e.is_copy() || e.origin != use.name) continue;
      p.predicted += predict_bytes(use, query_of(plan, e, rank)).value_or(e.bytes_sent) *
                     static_cast<uint64_t>(n);
      p.counted += e.bytes_sent * static_cast<uint64_t>(n);
    }
    found.push_back(p);
  }
  Prediction own{"the script"};  // such as collectives of an optimizer
  for (auto& [index, n] : times)
    if (const Exchange& e = plan.exchanges[static_cast<size_t>(index)];
        !e.is_copy() && e.origin.empty())
      own.counted += e.bytes_sent * static_cast<uint64_t>(n);
  own.predicted = own.counted;
  if (own.counted > 0) found.push_back(own);
  return found;
}

uint64_t predicted_bytes(const RankPlan& plan, const std::vector<StrategyUse>& stack, int rank) {
  uint64_t bytes = 0;
  for (const Prediction& p : predictions(plan, stack, rank)) bytes += p.predicted;
  return bytes;
}

}  // namespace orrery
