// SPDX-License-Identifier: Apache-2.0
//
// Parts of tensors: what one rank holds of a state.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "program/types.h"

namespace orrery {

// What a rank holds of a state: along some dims the index ranges, in order (every index of others),
// and of what that leaves, in row-major order, the elements [begin, end) (end -1: to the last).
// Whole by default; begin = end = 0 is nothing at all.
struct Part {
  using Ranges = std::vector<std::pair<int64_t, int64_t>>;
  std::map<int32_t, Ranges> dims;
  int64_t begin = 0, end = -1;

  bool is_whole() const { return dims.empty() && begin == 0 && end == -1; }
  bool is_flat() const { return begin != 0 || end != -1; }
  // The tensor that lies in memory: fewer indices of some dims, or [end - begin] if flat.
  Type type(const Type& whole) const;
  // Of the indices of a dim that are held, those at these places among them.
  void cut(int32_t dim, const Ranges& places);
  bool operator==(const Part&) const = default;
};

}  // namespace orrery
