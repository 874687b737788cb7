// SPDX-License-Identifier: Apache-2.0
#include "padding.h"

#include <orrery/sdk/plugin.hpp>

#include "driver.h"

namespace orr_cuda {
namespace {

constexpr int64_t whole = 16;  // bytes that extents are to be a multiple of

using Extent = int64_t MatmulShape::*;

// The extent along the rows of a tensor with padding that is no multiple of `unit`; null if there
// is none, or more than one. Other odd extents stay: whether a product has padding, and with it
// its bits, may not depend on the number of samples.
Extent odd_extent(const MatmulShape& s, int64_t padded, int64_t unit) {
  Extent found = nullptr;
  const auto look = [&](const std::optional<Matrix>& x, Extent along_rows) {
    if (!x || s.*along_rows % unit == 0) return true;
    if (found && found != along_rows) return false;
    found = along_rows;
    return true;
  };
  const bool one =
      (!(padded & 1) || look(s.a, s.a && s.a->turned ? &MatmulShape::m : &MatmulShape::k)) &&
      (!(padded & 2) || look(s.b, s.b && s.b->turned ? &MatmulShape::k : &MatmulShape::n)) &&
      (!(padded & 4) || look(s.y, &MatmulShape::n));
  return one ? found : nullptr;
}

}  // namespace

std::optional<Padding> Padding::of(const orr_op& op, MatmulShape& shape) {
  const int64_t padded = orr::attr_int(op, "padded", 0);
  if (!padded || shape.g != 1 || is_eight_bits(shape.dtype)) return {};
  Padding p;
  p.element_ = orr_dtype_bytes(shape.dtype);
  const int64_t unit = whole / p.element_;
  const Extent odd = odd_extent(shape, padded, unit);
  p.summed_ = odd == &MatmulShape::k;
  if (!odd || (p.summed_ && Leaves(op).n > 1)) return {};
  const bool m = odd == &MatmulShape::m, n = odd == &MatmulShape::n;
  p.a_.has = !n, p.b_.has = !m, p.y_.has = !p.summed_;
  MatmulShape grown = shape;
  p.more_ = unit - shape.*odd % unit, grown.*odd += p.more_;
  const bool fits =
      p.make_room(p.a_, grown.a, grown.a && grown.a->turned == m, padded & 1) &&
      p.make_room(p.b_, grown.b, grown.b && grown.b->turned == p.summed_, padded & 2) &&
      p.make_room(p.y_, grown.y, n, padded & 4);
  if (!fits) return {};
  shape = grown;
  return p;
}

// Grows the odd dim in one of the tensors, which lies along its rows or outside; false if there is
// no room.
bool Padding::make_room(Side& side, std::optional<Matrix>& x, bool along_rows, bool padded) const {
  if (!side.has) return true;
  if (!x) return false;
  side.matrix = *x, side.copied = !along_rows;
  side.bytes = static_cast<uint64_t>(x->cols * x->leading * element_);
  side.more = static_cast<uint64_t>(more_ * x->leading * element_);
  if (side.copied ? x->leading != x->rows : !padded || x->leading < x->rows + more_) return false;
  (along_rows ? x->rows : x->cols) += more_;
  return true;
}

uint64_t Padding::bytes() const {
  uint64_t sum = 0;
  for (const Side* side : {&a_, &b_, &y_}) sum += side->copy_bytes();
  return sum;
}

// Where the product reads one of its factors.
CUdeviceptr Padding::read_place(CUstream stream, const Side& side, CUdeviceptr at,
                                CUdeviceptr copy) const {
  if (side.copied) {
    ORR_DRIVER(cuMemcpyAsync, copy, at, side.bytes, stream);
    ORR_DRIVER(cuMemsetD8Async, copy + side.bytes, 0, side.more, stream);
    return copy;
  }
  // What lies in the padding is summed, or makes results that nobody reads.
  if (side.has && summed_)
    ORR_DRIVER(cuMemsetD2D8Async, at + static_cast<CUdeviceptr>(side.matrix.rows * element_),
               static_cast<size_t>(side.matrix.leading * element_), 0,
               static_cast<size_t>(more_ * element_), static_cast<size_t>(side.matrix.cols),
               stream);
  return at;
}

ProductPlaces Padding::before(CUstream stream, const ProductPlaces& at, CUdeviceptr copies) const {
  ProductPlaces made = at;
  made.a = read_place(stream, a_, at.a, copies);
  copies += a_.copy_bytes();
  made.b = read_place(stream, b_, at.b, copies);
  if (y_.copied) made.y = copies + b_.copy_bytes();
  return made;
}

void Padding::after(CUstream stream, const ProductPlaces& at, const ProductPlaces& made) const {
  if (y_.copied) ORR_DRIVER(cuMemcpyAsync, at.y, made.y, y_.bytes, stream);
}

}  // namespace orr_cuda
