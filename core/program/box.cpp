// SPDX-License-Identifier: Apache-2.0
//
// Cuts parts of tensors into boxes, the form in which checkpoints keep them.
#include <algorithm>
#include <cstring>

#include "program/part.h"

namespace orrery {
namespace {

// The box of `shape` at `offset`, whose elements lie one after another from `at`.
Box packed(Dims offset, Dims shape, int64_t at) {
  Dims strides = row_major(shape);
  return {std::move(offset), std::move(shape), at, std::move(strides)};
}

// Adds the boxes of the elements [begin, end) of the dims from `dim` on; `prefix` are the indices
// of the dims before. `at`: where the first one lies.
void add_run(const Dims& dims, const Dims& prefix, int64_t begin, int64_t end, int64_t at,
             std::vector<Box>& out) {
  if (begin >= end) return;
  const size_t dim = prefix.size();
  Dims offset = prefix, shape(dim, 1);
  if (dim == dims.size()) return out.push_back(packed(offset, shape, at));
  int64_t row = 1;
  for (size_t d = dim + 1; d < dims.size(); ++d) row *= dims[d];
  const auto partly = [&](int64_t index, int64_t lo, int64_t hi, int64_t place) {
    Dims inner = prefix;
    inner.push_back(index);
    add_run(dims, inner, lo, hi, place, out);
  };
  int64_t first = begin / row, last = end / row;  // whole rows: [first, last)
  if (first == last) return partly(first, begin % row, end - first * row, at);
  if (begin % row) partly(first, begin % row, row, at), ++first;
  if (first < last) {
    offset.push_back(first), shape.push_back(last - first);
    for (size_t d = dim + 1; d < dims.size(); ++d) offset.push_back(0), shape.push_back(dims[d]);
    out.push_back(packed(offset, shape, at + first * row - begin));
  }
  if (end % row) partly(last, 0, end % row, at + last * row - begin);
}

// Cuts a box along `dim`, whose indices are the `ranges` of the whole tensor put together.
void split(const Box& box, size_t dim, const Part::Ranges& ranges, std::vector<Box>& out) {
  const int64_t begin = box.offset[dim], end = begin + box.shape[dim];
  int64_t held = 0;
  for (auto& [lo, hi] : ranges) {
    const int64_t first = std::max(begin, held), last = std::min(end, held + hi - lo);
    if (first < last) {
      Box piece = box;
      piece.offset[dim] = lo + first - held, piece.shape[dim] = last - first;
      piece.at += (first - begin) * box.strides[dim];
      out.push_back(std::move(piece));
    }
    held += hi - lo;
  }
}

}  // namespace

int64_t Box::elements() const {
  int64_t n = 1;
  for (int64_t extent : shape) n *= extent;
  return n;
}

Box Box::common_with(const Box& other) const {
  Box found = *this;
  for (size_t d = 0; d < shape.size(); ++d) {
    const int64_t first = std::max(offset[d], other.offset[d]),
                  last = std::min(offset[d] + shape[d], other.offset[d] + other.shape[d]);
    found.offset[d] = first, found.shape[d] = std::max<int64_t>(last - first, 0);
    found.at += (first - offset[d]) * strides[d];
  }
  return found;
}

Dims row_major(const Dims& shape) {
  Dims strides(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
  return strides;
}

std::vector<Box> boxes_of(const Part& part, const Type& whole) {
  const Type cut = Part{part.dims, 0, -1}.type(whole);
  if (part.type(whole).elements() == 0) return {};
  std::vector<Box> boxes;
  if (part.is_flat())
    add_run(cut.dims, {}, part.begin, part.end < 0 ? cut.elements() : part.end, 0, boxes);
  else
    boxes.push_back(packed(Dims(cut.dims.size(), 0), cut.dims, 0));
  for (auto& [dim, ranges] : part.dims) {
    std::vector<Box> pieces;
    for (const Box& box : boxes) split(box, static_cast<size_t>(dim), ranges, pieces);
    boxes = std::move(pieces);
  }
  return boxes;
}

void copy_box(const Dims& shape, int64_t element_bytes, const std::byte* from,
              const Dims& from_strides, std::byte* to, const Dims& to_strides) {
  // The last dims that lie together in both places are copied at once.
  int64_t run = 1;
  size_t outer = shape.size();
  while (outer > 0 && from_strides[outer - 1] == run && to_strides[outer - 1] == run)
    run *= shape[--outer];
  const Dims dims(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(outer));
  Dims index(outer, 0);
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return;
  for (;;) {
    int64_t source = 0, target = 0;
    for (size_t d = 0; d < outer; ++d)
      source += index[d] * from_strides[d], target += index[d] * to_strides[d];
    std::memcpy(to + target * element_bytes, from + source * element_bytes,
                static_cast<size_t>(run * element_bytes));
    size_t d = outer;
    while (d > 0 && ++index[d - 1] == dims[d - 1]) index[--d] = 0;
    if (d == 0) return;
  }
}

}  // namespace orrery
