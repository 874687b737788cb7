// SPDX-License-Identifier: Apache-2.0
//
// The part of a state that one rank holds.
#pragma once

#include <cstddef>
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

// A rectangular piece of a tensor, and where its elements lie in the memory of a part.
struct Box {
  Dims offset, shape;  // in the whole tensor
  int64_t at = 0;      // the position of its first element in the part
  Dims strides;        // in the part

  int64_t elements() const;
  // What both have; without elements if they have nothing in common. Its place is that in `this`.
  Box common_with(const Box& other) const;
};
Dims row_major(const Dims& shape);  // strides
// The pieces that a part consists of, without those that have no element. The elements between two
// places of a row-major order make several: parts of rows, and whole rows between them.
std::vector<Box> boxes_of(const Part& part, const Type& whole);
// Copies a box of `shape` between two places that have these strides, in elements of this size.
void copy_box(const Dims& shape, int64_t element_bytes, const std::byte* from,
              const Dims& from_strides, std::byte* to, const Dims& to_strides);

}  // namespace orrery
