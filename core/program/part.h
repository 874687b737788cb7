// SPDX-License-Identifier: Apache-2.0
//
// The part of a state that one rank holds.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "program/types.h"

namespace orrery {

// A part is taken in two steps. Along the dims in `dims`, only these ranges of indices are kept, in
// order; of other dims, all. Of the elements that are left, in row-major order, only [begin, end)
// are kept (end -1: up to the last). By default a part is the whole; begin = end = 0 is no element.
struct Part {
  using Ranges = std::vector<std::pair<int64_t, int64_t>>;
  std::map<int32_t, Ranges> dims;
  int64_t begin = 0, end = -1;

  bool is_whole() const { return dims.empty() && begin == 0 && end == -1; }
  bool is_flat() const { return begin != 0 || end != -1; }
  // The type of the tensor in memory: with fewer indices of some dims, or [end - begin] if flat.
  Type type(const Type& whole) const;
  // Cuts further along `dim`: of the indices that are held, keeps those at these positions.
  void cut(int32_t dim, const Ranges& places);
  bool operator==(const Part&) const = default;
};

}  // namespace orrery
