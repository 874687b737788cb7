// SPDX-License-Identifier: Apache-2.0
#include "plan/fit.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/in_parallel.h"
#include "lower/lower.h"
#include "plan/memory.h"
#include "plan/rank_kinds.h"

namespace orrery {
namespace {

// Whether the pipeline's schedule allows this number of microbatches.
bool is_legal(int64_t n, const Mesh& mesh) {
  if (!mesh.schedule.timetable) return true;
  const std::vector<int64_t> first = assign_microbatches(n, mesh);
  try {
    for (size_t r = 0; r + 1 < first.size(); ++r)
      mesh.schedule.timetable(static_cast<int>(first[r + 1] - first[r]));
    return true;
  } catch (const Error& e) {
    return false;
  }
}

}  // namespace

Json counts_json(const Blueprint& b) {
  const int64_t batch = b.program.batch_size(), ranks = b.mesh.least_microbatches();
  std::vector<int64_t> counts = {ranks};
  for (int64_t rows = batch / ranks; b.mesh.schedule.one_by_one && rows > 0; --rows)
    if (int64_t n = (batch + rows - 1) / rows; n > counts.back() && is_legal(n, b.mesh))
      counts.push_back(n);
  if (counts.size() > 1 && !is_legal(ranks, b.mesh)) counts.erase(counts.begin());
  return {{"samples", batch}, {"one_by_one", b.mesh.schedule.one_by_one}, {"counts", counts}};
}

Json peak_json(const Blueprint& b, const std::vector<std::string>& kernels) {
  const RankKinds kinds(b);
  using Peak = std::pair<uint64_t, int>;
  auto peaks = in_parallel<Peak>(kinds.planned_together().size(), [&](size_t i) {
    const LowerRequest request = kinds.request(kinds.planned_together()[i].front(), kernels);
    const RankPlan plan = lower(request);
    uint64_t bytes = plan.bytes();
    for (auto& [category, more] : parts_of_rounds(b, plan, kernels)) bytes += more;
    return Peak{bytes, request.rank};
  });
  const auto& [bytes, rank] = *std::max_element(
      peaks.begin(), peaks.end(), [](const Peak& x, const Peak& y) { return x.first < y.first; });
  return {{"bytes", bytes}, {"rank", rank}};
}

}  // namespace orrery
