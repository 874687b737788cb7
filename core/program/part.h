// SPDX-License-Identifier: Apache-2.0
//
// Parts of tensors: what one rank holds of a state.
#pragma once

#include <utility>
#include <vector>

#include "program/types.h"

namespace orrery {

// What a rank holds of a state: along `dim` the index ranges, in order (kNone: every index), and of
// what that leaves, in row-major order, the elements [begin, end) (end -1: to the last). Whole by
// default; begin = end = 0 is nothing at all.
struct Part {
  int32_t dim = kNone;
  std::vector<std::pair<int64_t, int64_t>> ranges;
  int64_t begin = 0, end = -1;

  bool is_whole() const { return dim == kNone && begin == 0 && end == -1; }
  bool is_flat() const { return begin != 0 || end != -1; }
  // The tensor that lies in memory: fewer indices of `dim`, or [end - begin] if flat.
  Type type(const Type& whole) const;
  bool operator==(const Part&) const = default;
};

}  // namespace orrery
