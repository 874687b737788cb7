// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <functional>

#include "program/state.h"

namespace orrery {
namespace {

// Visits the part's runs of neighbouring elements: where they start in the whole tensor, where
// among the held ones, how many.
class RunsOf {
 public:
  using Visit = std::function<void(int64_t from, int64_t to, int64_t n)>;
  RunsOf(const Type& whole, const Part& part, const Visit& visit)
      : dims_(whole.dims), part_(part), visit_(visit) {
    last_ = part.dims.empty() ? dims_.size() : static_cast<size_t>(part.dims.rbegin()->first);
    for (size_t d = last_ + 1; d < dims_.size(); ++d) inner_ *= dims_[d];
    if (part.dims.empty())
      clip(0, whole.elements());
    else
      walk(0, 0);
  }

 private:
  // Those of the elements at `row` of the dims before d.
  void walk(size_t d, int64_t row) {
    const auto held = part_.dims.find(static_cast<int32_t>(d));
    const Part::Ranges all = {{0, dims_[d]}};
    for (auto [lo, hi] : held == part_.dims.end() ? all : held->second) {
      const int64_t begin = row * dims_[d] + lo;
      if (d == last_) clip(begin * inner_, (hi - lo) * inner_);
      for (int64_t i = 0; d < last_ && i < hi - lo; ++i) walk(d + 1, begin + i);
    }
  }

  void clip(int64_t from, int64_t n) {
    const int64_t end = part_.end < 0 ? INT64_MAX : part_.end;
    const int64_t lo = std::max(at_, part_.begin), hi = std::min(at_ + n, end);
    if (lo < hi) visit_(from + lo - at_, lo - part_.begin, hi - lo);
    at_ += n;
  }

  const Dims& dims_;
  const Part& part_;
  const Visit& visit_;
  size_t last_;  // the innermost dim that is cut
  int64_t inner_ = 1, at_ = 0;
};

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
  const auto before = dims.find(dim);
  if (before == dims.end()) {
    dims[dim] = places;
    return;
  }
  Ranges held;
  for (auto& [begin, end] : places) {
    int64_t at = 0;  // of the range among the held ones
    for (auto& [lo, hi] : before->second) {
      const int64_t first = std::max(lo, lo + begin - at), last = std::min(hi, lo + end - at);
      if (first < last) held.emplace_back(first, last);
      at += hi - lo;
    }
  }
  before->second = std::move(held);
}

void take_part(const HostTensor& whole, const Part& part, std::byte* to) {
  int64_t element = orr_dtype_bytes(whole.type.dtype);
  const std::byte* from = whole.bytes->data();
  RunsOf(whole.type, part, [&](int64_t there, int64_t here, int64_t n) {
    std::memcpy(to + here * element, from + there * element, static_cast<size_t>(n * element));
  });
}

void put_part(HostTensor& whole, const Part& part, const std::byte* from) {
  int64_t element = orr_dtype_bytes(whole.type.dtype);
  std::byte* to = whole.bytes->data();
  RunsOf(whole.type, part, [&](int64_t there, int64_t here, int64_t n) {
    std::memcpy(to + there * element, from + here * element, static_cast<size_t>(n * element));
  });
}

}  // namespace orrery
