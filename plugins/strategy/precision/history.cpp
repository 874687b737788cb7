// SPDX-License-Identifier: Apache-2.0
//
// A largest size over the batch is no sum, and only sums are known of a batch in the end. So each
// sample counts the powers of two that its size needs: the counts are added as gradients are, and
// the largest power with a count is that of the batch.
#include "history.h"

#include <algorithm>
#include <set>

namespace precision {
namespace {

// Powers of two from 2^-40 to 2^23. What is smaller counts as nothing seen.
constexpr int64_t kPowers = 64;
constexpr double kFirstPower = -40;

// "blocks.1.proj.x": the module's path, and a number if it has several layers.
std::string name_of(const Tensor& tensor, std::set<std::string>& taken) {
  const std::string region = tensor.layer.substr(0, tensor.layer.find(' '));
  const size_t dot = region.find('.');
  const std::string path = dot == std::string::npos ? "model" : region.substr(dot + 1);
  std::string name = path;
  for (int n = 2; !taken.insert(name + (tensor.slope ? ".dy" : ".x")).second; ++n)
    name = path + "." + std::to_string(n);
  return name + (tensor.slope ? ".dy" : ".x");
}

orr::Value power_of_two(const orr::Program& p, orr::Value exponent) {
  // However pow is rounded, half of the next power more is near no other one.
  return leading_power(p.pointwise(ORR_FN_POW, {2.0, exponent}) * 1.5);
}

}  // namespace

History::History(const orr::Program& p, const std::vector<LinearProduct>& products) : p_(p) {
  std::set<std::string> taken;
  for (const LinearProduct& product : products)
    for (const bool slope : {false, true}) {
      if (slope && !p.trains()) continue;
      const auto [state, fresh] = states_.try_emplace(Tensor{product.site, slope}, -1);
      if (!fresh) continue;
      const std::string name = name_of(state->first, taken);
      state->second =
          p.state({.name = name.c_str(), .dtype = ORR_F32, .dims = std::vector<int64_t>{kSteps}});
    }
}

orr::Value History::scale(const Tensor& tensor, const Format& format) const {
  const orr::Value power = reduced(p_, states_.at(tensor), "max", 0, 1);
  const orr::Value seen = p_.pointwise(ORR_FN_GT, {power, 0.0});
  return p_.pointwise(ORR_FN_SELECT, {seen, p_.div(format.top, power), 1.0});
}

void History::observe(const Tensor& tensor, int32_t v) {
  const orr::Value power = fitting_power(p_, p_.reshape(sample_sizes(p_, v), {p_.dims(v)[0], 1}));
  const orr::Value step =
      p_.op("iota", {}, {orr::int_attr("n", kPowers), orr::int_attr("dtype", ORR_F32)});
  // Between a power and the one below.
  const orr::Value least = p_.pointwise(ORR_FN_POW, {2.0, step + kFirstPower}) * 0.75;
  const orr::Value needed = p_.cast(p_.pointwise(ORR_FN_GT, {power, least}), ORR_F32);
  counts_[tensor].push_back(reduced(p_, needed, "sum", 0, 1));
}

void History::update() const {
  for (auto& [tensor, counts] : counts_) {
    p_.beside(counts[0], ORR_PHASE_UPDATE);
    orr::Value all = p_.op("total", {counts[0]});
    for (size_t i = 1; i < counts.size(); ++i) all = all + p_.op("total", {counts[i]});
    const orr::Value some = p_.cast(p_.pointwise(ORR_FN_GT, {all, 0.0}), ORR_F32);
    const orr::Value powers = p_.reshape(reduced(p_, some, "sum", 0, 1), {1});
    const orr::Value power = power_of_two(p_, powers + (kFirstPower - 1));
    const orr::Value now =
        p_.pointwise(ORR_FN_SELECT, {p_.pointwise(ORR_FN_GT, {powers, 0.0}), power, 0.0});
    const std::vector<int64_t> sizes = {kSteps - 1, 1};
    const int32_t state = states_.at(tensor);
    const orr::Value before =
        p_.op("split", {state}, {orr::int_attr("dim", 0), orr::ints_attr("sizes", sizes)});
    p_.update(state, p_.op("concat", {now, before}, {orr::int_attr("dim", 0)}));
  }
}

}  // namespace precision
