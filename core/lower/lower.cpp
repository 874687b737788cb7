// SPDX-License-Identifier: Apache-2.0
#include "lower/lower.h"

#include "base/error.h"

namespace orrery {

uint64_t RankPlan::bytes_sent() const {
  uint64_t sum = 0;
  for (const Bucket& b : buckets) sum += b.bytes_sent;
  return sum;
}

double RankPlan::flops() const {
  double sum = 0;
  for (const Launch& l : launches) sum += l.cost.flops;
  return sum;
}

RankPlan lower(const LowerRequest& request) {
  int ranks = request.spread->batch_ranks();
  int64_t leaves = request.microbatches;
  if (leaves < ranks)
    fail(ORR_INVALID, "{} microbatches cannot be dealt to {} data-parallel ranks: give at least {}",
         leaves, ranks, ranks);
  std::vector<int64_t> first = deal_leaves(leaves, ranks);
  Leaves mine;
  mine.total = leaves;
  size_t me = static_cast<size_t>(request.spread->coordinate(request.spread->batch_axis, request.rank));
  mine.first = first[me], mine.last = first[me + 1];
  int64_t batch = request.logical->batch_size();
  if (batch && batch < leaves)
    fail(ORR_INVALID, "a batch of {} is smaller than the {} microbatches", batch, leaves);
  mine.rows = (batch + leaves - 1) / leaves;

  RankPlan plan;
  plan.kernel_names = request.kernels;
  plan.local = localize(*request.logical, mine);
  fuse_pointwise(plan.local);
  place_values(plan);
  fill_buckets(plan, request);
  make_schedule(plan);
  plan_memory(plan);
  verify(plan);
  return plan;
}

}  // namespace orrery
