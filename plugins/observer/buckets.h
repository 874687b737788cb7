// SPDX-License-Identifier: Apache-2.0
//
// The histogram of some numbers: 30 buckets of equal width, also as JSON.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "json_text.h"

namespace observer {

inline constexpr int kBuckets = 30;

// Rows (left, right, count). From the least to the greatest finite value; none if there is none.
inline std::vector<double> buckets(const float* x, int64_t n) {
  float least = INFINITY, most = -INFINITY;
  for (int64_t i = 0; i < n; ++i)
    if (std::isfinite(x[i])) least = std::min(least, x[i]), most = std::max(most, x[i]);
  if (least > most) return {};
  const double width = (double(most) - least) / kBuckets;
  std::vector<double> rows;
  for (int b = 0; b < kBuckets; ++b)
    rows.insert(rows.end(),
                {least + b * width, b + 1 == kBuckets ? most : least + (b + 1) * width, 0});
  for (int64_t i = 0; i < n; ++i) {
    if (!std::isfinite(x[i])) continue;
    const int b = width > 0 ? int((double(x[i]) - least) / width) : kBuckets - 1;
    ++rows[size_t(std::clamp(b, 0, kBuckets - 1)) * 3 + 2];
  }
  return rows;
}

struct HistogramLists {
  std::string counts = "[", edges = "[";  // as JSON; there is one edge more than counts
};

// Of rows as `buckets` gives them.
inline HistogramLists histogram_lists(const std::vector<double>& rows) {
  HistogramLists lists;
  for (size_t i = 0; i < rows.size(); i += 3) {
    lists.counts += (i ? "," : "") + number(rows[i + 2]);
    lists.edges += number(rows[i]) + ",";
  }
  lists.counts += "]";
  lists.edges += rows.empty() ? "]" : number(rows[rows.size() - 2]) + "]";
  return lists;
}

inline std::string histogram_json(const std::vector<double>& rows) {
  const HistogramLists lists = histogram_lists(rows);
  return "{\"values\": " + lists.counts + ", \"bins\": " + lists.edges + "}\n";
}

}  // namespace observer
