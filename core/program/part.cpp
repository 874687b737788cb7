// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <functional>

#include "program/state.h"

namespace orrery {
namespace {

struct Runs {
  int64_t outer = 1, inner = 1;  // elements: whole = outer x indices of dim x inner
};

Runs runs_of(const Type& whole, int32_t dim) {
  Runs r;
  for (size_t i = 0; i < whole.dims.size(); ++i)
    (static_cast<int32_t>(i) < dim ? r.outer : r.inner) *=
        static_cast<int32_t>(i) == dim ? 1 : whole.dims[i];
  return r;
}

// Visits the part's runs of neighbouring elements: where they start in the whole tensor, where
// among the held ones, how many.
void each_run(const Type& whole, const Part& part,
              const std::function<void(int64_t from, int64_t to, int64_t n)>& visit) {
  int64_t end = part.end < 0 ? INT64_MAX : part.end, at = 0;  // at: before the flat cut
  auto clipped = [&](int64_t from, int64_t n) {
    int64_t lo = std::max(at, part.begin), hi = std::min(at + n, end);
    if (lo < hi) visit(from + lo - at, lo - part.begin, hi - lo);
    at += n;
  };
  if (part.dim == kNone) return clipped(0, whole.elements());
  Runs r = runs_of(whole, part.dim);
  int64_t extent = whole.dims[static_cast<size_t>(part.dim)];
  for (int64_t o = 0; o < r.outer; ++o)
    for (auto& [lo, hi] : part.ranges) clipped((o * extent + lo) * r.inner, (hi - lo) * r.inner);
}

}  // namespace

Type Part::type(const Type& whole) const {
  Type t = whole;
  if (dim != kNone) {
    int64_t& extent = t.dims[static_cast<size_t>(dim)];
    extent = 0;
    for (auto& [lo, hi] : ranges) extent += hi - lo;
  }
  if (is_flat()) t.dims = {(end < 0 ? t.elements() : end) - begin};
  return t;
}

void take_part(const HostTensor& whole, const Part& part, std::byte* to) {
  int64_t element = orr_dtype_bytes(whole.type.dtype);
  const std::byte* from = whole.bytes->data();
  each_run(whole.type, part, [&](int64_t there, int64_t here, int64_t n) {
    std::memcpy(to + here * element, from + there * element, static_cast<size_t>(n * element));
  });
}

void put_part(HostTensor& whole, const Part& part, const std::byte* from) {
  int64_t element = orr_dtype_bytes(whole.type.dtype);
  std::byte* to = whole.bytes->data();
  each_run(whole.type, part, [&](int64_t there, int64_t here, int64_t n) {
    std::memcpy(to + there * element, from + here * element, static_cast<size_t>(n * element));
  });
}

}  // namespace orrery
