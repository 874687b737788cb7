// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <functional>

#include "program/state.h"

namespace orrery {
namespace {

// Visits the part's runs of consecutive elements: where a run starts in the whole tensor, where
// among the elements that are held, and how long it is.
void each_run(const Type& whole, const Part& part,
              const std::function<void(int64_t from, int64_t to, int64_t n)>& visit) {
  int64_t end = part.end < 0 ? INT64_MAX : part.end, at = 0;  // at: position before the flat cut
  auto clipped = [&](int64_t from, int64_t n) {
    int64_t lo = std::max(at, part.begin), hi = std::min(at + n, end);
    if (lo < hi) visit(from + lo - at, lo - part.begin, hi - lo);
    at += n;
  };
  if (part.dims.empty()) return clipped(0, whole.elements());
  const size_t last = static_cast<size_t>(part.dims.rbegin()->first);
  int64_t inner = 1;
  for (size_t d = last + 1; d < whole.dims.size(); ++d) inner *= whole.dims[d];
  // `row`: the index over the dims before d
  std::function<void(size_t, int64_t)> walk = [&](size_t d, int64_t row) {
    const auto held = part.dims.find(static_cast<int32_t>(d));
    const Part::Ranges all = {{0, whole.dims[d]}};
    for (auto [lo, hi] : held == part.dims.end() ? all : held->second) {
      const int64_t first = row * whole.dims[d] + lo;
      if (d == last) clipped(first * inner, (hi - lo) * inner);
      for (int64_t i = 0; d < last && i < hi - lo; ++i) walk(d + 1, first + i);
    }
  };
  walk(0, 0);
}

int64_t held_of(const Part::Ranges& ranges) {
  int64_t n = 0;
  for (auto& [lo, hi] : ranges) n += hi - lo;
  return n;
}

}  // namespace

Type Part::type(const Type& whole) const {
  Type t = whole;
  for (auto& [dim, ranges] : dims) t.dims[static_cast<size_t>(dim)] = held_of(ranges);
  if (is_flat()) t.dims = {(end < 0 ? t.elements() : end) - begin};
  return t;
}

void Part::cut(int32_t dim, const Ranges& places) {
  Ranges& now = dims.try_emplace(dim, Ranges{{0, INT64_MAX}}).first->second;
  Ranges held;
  for (auto& [begin, end] : places) {
    int64_t at = 0;  // where the range begins among the held indices
    for (auto& [lo, hi] : now) {
      const int64_t first = std::max(lo, lo + begin - at), last = std::min(hi, lo + end - at);
      if (first < last) held.emplace_back(first, last);
      at += hi - lo;
    }
  }
  now = std::move(held);
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
