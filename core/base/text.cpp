// SPDX-License-Identifier: Apache-2.0
//
// Edit distance, joining, sizes for people.
#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace orrery {
namespace {

// How many letters must be inserted, deleted, changed or swapped with a neighbour to turn a into b.
size_t distance(std::string_view a, std::string_view b) {
  const size_t width = b.size() + 1;
  std::vector<size_t> d((a.size() + 1) * width);
  for (size_t i = 0; i <= a.size(); ++i) d[i * width] = i;
  for (size_t j = 0; j <= b.size(); ++j) d[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t change = d[(i - 1) * width + j - 1] + (a[i - 1] != b[j - 1]);
      size_t best = std::min({d[(i - 1) * width + j] + 1, d[i * width + j - 1] + 1, change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        best = std::min(best, d[(i - 2) * width + j - 2] + 1);
      d[i * width + j] = best;
    }
  }
  return d.back();
}

}  // namespace

std::string nearest(std::string_view name, const std::vector<std::string>& known) {
  std::string best;
  size_t best_distance = SIZE_MAX;
  for (const std::string& candidate : known) {
    size_t d = distance(name, candidate);
    if (d < best_distance && 3 * d <= std::max(name.size(), candidate.size())) {
      best = candidate;
      best_distance = d;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view name, const std::vector<std::string>& known) {
  std::string near = nearest(name, known);
  return near.empty() ? "" : fmt::format(" (did you mean '{}'?)", near);
}

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  return fmt::format("{}", fmt::join(parts, separator));
}

std::string human_bytes(double bytes) {
  static constexpr std::array units = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < units.size()) {
    bytes /= 1024;
    ++unit;
  }
  if (unit == 0) return fmt::format("{:.0f} B", bytes);
  return fmt::format("{:.{}f} {}", bytes, bytes < 100 ? 1 : 0, units[unit]);
}

}  // namespace orrery
