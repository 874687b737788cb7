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

// The highest of these rates in the dtype that most of the ranks' products have; 0: not known.
double product_rate(const PlannedStep& step, const std::map<std::string, Rate>& rates) {
  std::map<std::string, double> flops;
  for (const PlannedRanks& kind : step.kinds)
    for (auto& [dtype, n] : kind.product_flops)
      flops[dtype] += n * static_cast<double>(kind.ranks.size());
  const auto most = std::max_element(flops.begin(), flops.end(),
                                     [](auto& x, auto& y) { return x.second < y.second; });
  const auto rate = most == flops.end() ? rates.end() : rates.find(most->first);
  return rate == rates.end() ? 0 : rate->second.highest();
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
    add(!mesh.schedule.axis.empty() && axis == mesh.schedule.axis ? "bubble" : "blocked", axis,
        seconds);
    waited += seconds;
  }
  add("imbalance", "", std::max(spent.idle() - waited, 0.0));
  sort_by_share(parts);
  return parts;
}

Figures figures_of(const PlannedStep& step, const Blueprint& b, const Machine& machine,
                   double model_flops, double convention_flops) {
  Figures figures{model_flops, 0, 0, {}};
  const double seconds = b.mesh.world * step.seconds;
  if (const double rate = product_rate(step, machine.matrix_flops))
    figures.mfu = model_flops / (rate * seconds);
  if (const double rate = product_rate(step, machine.nominal_flops))
    figures.nominal_mfu = convention_flops / (rate * seconds);
  std::map<std::pair<std::string, std::string>, double> sums;
  for (const PlannedRanks& kind : step.kinds)
    for (const TimePart& part : time_parts(kind, b.mesh))
      sums[{part.what, part.axis}] +=
          part.share * static_cast<double>(kind.ranks.size()) / b.mesh.world;
  for (auto& [by, share] : sums) figures.parts.push_back({by.first, by.second, share});
  sort_by_share(figures.parts);
  return figures;
}

std::string bottleneck(const Figures& figures) {
  const TimePart& most = figures.parts.front();
  static const std::map<std::string, std::string> names = {
      {"products", "matrix products"},
      {"arithmetic", "the arithmetic of ops that are no products"},
      {"memory", "ops that read and write memory"},
      {"launches", "launches, before their work begins"},
      {"exposed", "waits for bytes on axis '{}'"},
      {"offload", "waits for copies from and to {}"},
      {"bubble", "the bubble between the stages of axis '{}'"},
      {"blocked", "waits for ranks of axis '{}' that are not ready for an exchange"},
      {"imbalance", "waits for ranks that end later"}};
  std::string text = names.at(most.what);
  if (const size_t at = text.find("{}"); at != std::string::npos) text.replace(at, 2, most.axis);
  return fmt::format("{:.0f} % of the ranks' time goes to {}", 100 * most.share, text);
}

}  // namespace orrery
