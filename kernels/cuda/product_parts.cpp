// SPDX-License-Identifier: Apache-2.0
#include "product_parts.h"

#include <orrery/sdk/plugin.hpp>

namespace orr_cuda {
namespace {

constexpr int64_t packet = 16;      // bytes
constexpr int64_t least_dim = 256;  // for which a second launch is worth it

enum class Dim { m, n, k };

// The elements first .. first + size - 1 of a dim.
ProductPart part(const MatmulShape& whole, Dim dim, int64_t first, int64_t size, bool adds) {
  ProductPart p{whole, 0, 0, 0, adds, first > 0};
  Matrix &a = *p.shape.a, &b = *p.shape.b, &y = *p.shape.y;
  const auto cut = [&](Matrix& x, bool within_rows, int64_t& offset) {
    (within_rows ? x.rows : x.cols) = size;
    offset = first * (within_rows ? 1 : x.leading) * orr_dtype_bytes(whole.dtype);
  };
  if (dim == Dim::m) p.shape.m = size, cut(a, a.turned, p.a), cut(y, false, p.y);
  if (dim == Dim::n) p.shape.n = size, cut(b, !b.turned, p.b), cut(y, true, p.y);
  if (dim == Dim::k) p.shape.k = size, cut(a, !a.turned, p.a), cut(b, b.turned, p.b);
  return p;
}

bool is_packed(int64_t elements, const MatmulShape& shape) {
  return elements * orr_dtype_bytes(shape.dtype) % packet == 0;
}

// Whether an operand has this many elements side by side, and rows that are a multiple of 16 bytes
// apart.
bool is_odd(const Matrix& x, const MatmulShape& shape) {
  return x.rows > least_dim && !is_packed(x.rows, shape) && is_packed(x.leading, shape);
}

}  // namespace

std::vector<ProductPart> parts_of(const MatmulShape& shape, bool over_leaves) {
  const std::vector<ProductPart> whole{{shape, 0, 0, 0, false, false}};
  if (shape.g != 1 || orr_dtype_bytes(shape.dtype) != 2) return whole;
  const Matrix &a = *shape.a, &b = *shape.b;
  const bool odd_a = is_odd(a, shape), odd_b = is_odd(b, shape);
  const auto two = [&](Dim dim, int64_t size) -> std::vector<ProductPart> {
    const int64_t most = size - size % (packet / orr_dtype_bytes(shape.dtype));
    const bool sum = dim == Dim::k;
    std::vector<ProductPart> parts{part(shape, dim, 0, most, sum),
                                   part(shape, dim, most, size - most, false)};
    if (sum) std::swap(parts[0], parts[1]);
    return parts;
  };
  if (odd_a && a.turned) return two(Dim::m, shape.m);
  if ((odd_a && !a.turned) || (odd_b && b.turned))
    return over_leaves ? whole : two(Dim::k, shape.k);
  if (odd_b || is_odd(*shape.y, shape)) return two(Dim::n, shape.n);
  return whole;
}

}  // namespace orr_cuda
