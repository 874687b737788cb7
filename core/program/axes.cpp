// SPDX-License-Identifier: Apache-2.0
#include "program/axes.h"

#include <algorithm>

namespace orrery {

std::vector<std::string> factors_of(const std::string& product) {
  std::vector<std::string> found;
  for (size_t at = 0; at < product.size();) {
    const size_t end = std::min(product.find('*', at), product.size());
    found.push_back(product.substr(at, end - at));
    at = end + 1;
  }
  return found;
}

bool has_axis(const std::string& product, const std::string& axis) {
  const std::vector<std::string> all = factors_of(product), some = factors_of(axis);
  return std::all_of(some.begin(), some.end(), [&](const std::string& one) {
    return std::find(all.begin(), all.end(), one) != all.end();
  });
}

std::string with_axis(const std::string& product, const std::string& axis) {
  std::string all = product;
  for (const std::string& one : factors_of(axis))
    if (!has_axis(all, one)) all += (all.empty() ? "" : "*") + one;
  return all;
}

std::string without_axis(const std::string& product, const std::string& axis) {
  std::string left;
  for (const std::string& one : factors_of(product))
    if (!has_axis(axis, one)) left = with_axis(left, one);
  return left;
}

}  // namespace orrery
