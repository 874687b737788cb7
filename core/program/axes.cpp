// SPDX-License-Identifier: Apache-2.0
#include "program/axes.h"

#include <algorithm>
#include <string_view>

namespace orrery {
namespace {

// Calls `use` with one factor after another as long as it returns true. Returns whether it did for
// all. It copies nothing, because lowering calls it for each op.
template <class Use>
bool all_factors(std::string_view product, const Use& use) {
  while (!product.empty()) {
    const size_t end = std::min(product.find('*'), product.size());
    if (!use(product.substr(0, end))) return false;
    product.remove_prefix(std::min(end + 1, product.size()));
  }
  return true;
}

bool has_factor(std::string_view product, std::string_view one) {
  return !all_factors(product, [&](std::string_view factor) { return factor != one; });
}

void append(std::string& product, std::string_view one) {
  if (!product.empty()) product += '*';
  product += one;
}

}  // namespace

std::vector<std::string> factors_of(const std::string& product) {
  std::vector<std::string> found;
  all_factors(product, [&](std::string_view one) { return found.emplace_back(one), true; });
  return found;
}

bool has_axis(const std::string& product, const std::string& axis) {
  return all_factors(axis, [&](std::string_view one) { return has_factor(product, one); });
}

std::string with_axis(const std::string& product, const std::string& axis) {
  std::string all = product;
  all_factors(axis, [&](std::string_view one) {
    if (!has_factor(all, one)) append(all, one);
    return true;
  });
  return all;
}

std::string without_axis(const std::string& product, const std::string& axis) {
  std::string left;
  all_factors(product, [&](std::string_view one) {
    if (!has_factor(axis, one) && !has_factor(left, one)) append(left, one);
    return true;
  });
  return left;
}

}  // namespace orrery
