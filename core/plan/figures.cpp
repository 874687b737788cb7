// SPDX-License-Identifier: Apache-2.0
#include "plan/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace orrery {
namespace {

void sort_by_share(std::vector<TimePart>& parts) {
  std::stable_sort(parts.begin(), parts.end(),
                   [](const TimePart& x, const TimePart& y) { return x.share > y.share; });
}

// The FLOP/s of the ranks' products, in the dtype that most of them have.
double product_rate(const PlannedStep& step, const Machine& machine) {
  std::map<std::string, double> flops;
  for (const PlannedRanks& kind : step.kinds)
    for (auto& [dtype, n] : kind.product_flops)
      flops[dtype] += n * static_cast<double>(kind.ranks.size());
  double most = 0, rate = 0;
  for (auto& [dtype, n] : flops)
    if (n > most) most = n, rate = machine.matrix_flops.at(dtype).highest();
  return rate;
}

}  // namespace

std::vector<TimePart> time_parts(const PlannedRanks& kind, const Mesh& mesh) {
  const Spent& spent = kind.spent;
  std::vector<TimePart> parts;
  const auto add = [&](const std::string& what, const std::string& axis, double seconds) {
    parts.push_back({what, axis, seconds / spent.step});
  };
  for (auto& [what, seconds] : kind.compute) add(what, "", seconds);
  for (auto& [axis, seconds] : spent.exposed_by) add("exposed", axis, seconds);
  for (auto& [tier, seconds] : spent.offload_by) add("offload", tier, seconds);
  double waited = 0;
  for (auto& [axis, seconds] : spent.blocked_by) {
    add(!mesh.pipe_axis.empty() && axis == mesh.pipe_axis ? "bubble" : "blocked", axis, seconds);
    waited += seconds;
  }
  add("imbalance", "", std::max(spent.idle() - waited, 0.0));
  sort_by_share(parts);
  return parts;
}

Figures figures_of(const PlannedStep& step, const Blueprint& b, const Machine& machine,
                   double model_flops) {
  Figures figures{model_flops, 0, {}};
  const double all = product_rate(step, machine) * b.mesh.world * step.seconds;
  if (all > 0) figures.mfu = model_flops / all;
  std::map<std::pair<std::string, std::string>, double> sums;
  for (const PlannedRanks& kind : step.kinds)
    for (const TimePart& part : time_parts(kind, b.mesh))
      sums[{part.what, part.axis}] +=
          part.share * static_cast<double>(kind.ranks.size()) / b.mesh.world;
  for (auto& [by, share] : sums) figures.parts.push_back({by.first, by.second, share});
  sort_by_share(figures.parts);
  return figures;
}

std::string advice(const Figures& figures) {
  const TimePart& most = figures.parts.front();
  static const std::map<std::string, std::string> next = {
      {"products",
       "matrix products: more ranks, 16-bit operands or fewer activations computed "
       "again"},
      {"arithmetic", "ops that are no products, by their arithmetic: more ranks"},
      {"memory", "ops that read and write memory: smaller dtypes, or ops that fuse"},
      {"launches", "launches, each of little work: larger microbatches, or fewer ranks"},
      {"exposed",
       "bytes on axis '{}': fewer ranks on it, its ranks on one host, or larger "
       "microbatches"},
      {"offload", "copies from and to {}: fewer tensors there, or more work between them"},
      {"bubble",
       "the bubble between the stages of axis '{}': more microbatches, more chunks a stage, or "
       "fewer stages"},
      {"blocked", "ranks of axis '{}' that are not ready for an exchange: deal the work evenly"},
      {"imbalance", "ranks that end later than others: deal the work evenly"}};
  std::string text = next.at(most.what);
  if (const size_t at = text.find("{}"); at != std::string::npos) text.replace(at, 2, most.axis);
  return fmt::format("{:.0f} % of the ranks' time goes to {}", 100 * most.share, text);
}

}  // namespace orrery
