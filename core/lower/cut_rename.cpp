// SPDX-License-Identifier: Apache-2.0
//
// Ops that only rename elements, along the dim that is cut: where the shares of the result are the
// shares of what came in, no byte moves.
#include <algorithm>
#include <numeric>

#include "lower/cut_pass.h"

namespace orrery {
namespace {

// The segments that each part of a split consists of; nothing if a part ends inside a segment.
std::optional<std::vector<Dims>> apart(const Dims& segments, const Dims& sizes) {
  std::vector<Dims> parts;
  size_t at = 0;
  for (int64_t size : sizes) {
    parts.emplace_back();
    for (int64_t sum = 0; sum < size;) {
      if (at == segments.size()) return std::nullopt;
      sum += segments[at];
      parts.back().push_back(segments[at++]);
      if (sum > size) return std::nullopt;
    }
  }
  return parts;
}

struct Group {  // dims [a0, a1) of what came in and [b0, b1) of the result hold the same elements
  size_t a0, a1, b0, b1;
};

std::vector<Group> groups(const Dims& a, const Dims& b) {
  std::vector<Group> found;
  for (size_t i = 0, j = 0; i < a.size() || j < b.size();) {
    Group g{i, i, j, j};
    int64_t pa = i < a.size() ? a[i++] : 1, pb = j < b.size() ? b[j++] : 1;
    while (pa != pb) {
      if (pa < pb && i < a.size())
        pa *= a[i++];
      else if (j < b.size())
        pb *= b[j++];
      else
        break;
    }
    g.a1 = i, g.b1 = j;
    found.push_back(g);
  }
  return found;
}

int64_t product(const Dims& dims, size_t begin, size_t end) {
  return std::accumulate(dims.begin() + static_cast<long>(begin),
                         dims.begin() + static_cast<long>(end), int64_t{1}, std::multiplies<>());
}

// `flat` segments of neighbouring elements as segments of dim j of [b0, b1), if they are any.
std::optional<Dims> along_dim(const Dims& flat, const Dims& b, const Group& g, size_t j,
                              int ranks) {
  const int64_t repeats = product(b, g.b0, j), inner = product(b, j + 1, g.b1);
  if (flat.size() == 1 && flat[0] == b[j] && repeats == 1 && inner == 1)
    return flat;  // shares may be uneven
  const size_t n = flat.size() / static_cast<size_t>(repeats);
  if (!n || flat.size() % static_cast<size_t>(repeats)) return std::nullopt;
  Dims segments(flat.begin(), flat.begin() + static_cast<long>(n));
  for (size_t i = 0; i < flat.size(); ++i)
    if (flat[i] != segments[i % n]) return std::nullopt;
  for (int64_t& s : segments) {
    if (s % inner || s / inner % ranks) return std::nullopt;
    s /= inner;
  }
  if (std::accumulate(segments.begin(), segments.end(), int64_t{0}) != b[j]) return std::nullopt;
  return segments;
}

std::optional<Cut> reshaped(const Cut& cut, const Dims& a, const Dims& b, int ranks) {
  const size_t dim = static_cast<size_t>(cut.dim);
  for (const Group& g : groups(a, b)) {
    if (dim < g.a0 || dim >= g.a1) continue;
    const int64_t inner = product(a, dim + 1, g.a1);
    Dims flat;
    for (int64_t r = product(a, g.a0, dim); r > 0; --r)
      for (int64_t s : cut.segments) flat.push_back(s * inner);
    for (size_t j = g.b0; j < g.b1; ++j)
      if (auto segments = along_dim(flat, b, g, j, ranks))
        return Cut::of(static_cast<int>(j), *segments);
  }
  return std::nullopt;
}

}  // namespace

ValueId CutPass::moved_before(ValueId v, const Cut& to) const {
  const OpId maker = from_.value(v).producer;
  if (maker == kNone || to.kind != Cut::parts) return kNone;
  const Op& op = from_.ops()[static_cast<size_t>(maker)];
  if (op.kind != "reshape") return kNone;
  const ValueId x = op.in[0];
  for (auto at = moved_.lower_bound({x, Cut::parts, 0, {}, 0}); at != moved_.end(); ++at) {
    const auto& [value, kind, dim, segments, phase] = at->first;
    if (value != x || kind != Cut::parts) break;
    if (reshaped(Cut::of(dim, segments), from_.type(x).dims, from_.type(v).dims, parts_) == to)
      return at->second;
  }
  return kNone;
}

std::optional<Way> CutPass::renaming(const Op& op) const {
  if (op.in.empty() || cut(op.in[0]).kind != Cut::parts) return std::nullopt;
  const Cut& first = cut(op.in[0]);
  const int dim = static_cast<int>(attr_int(op.attrs, "dim", 0));
  Way way{{first}, {}, 0};
  if (op.kind == "reshape") {
    auto to = reshaped(first, from_.type(op.in[0]).dims, from_.type(op.out[0]).dims, parts_);
    if (!to) return std::nullopt;
    way.out = {*to};
    return way;
  }
  if (first.dim != dim) return std::nullopt;
  if (op.kind == "split") {
    auto parts = apart(first.segments, attr_ints(op.attrs, "sizes"));
    if (!parts) return std::nullopt;
    for (Dims& segments : *parts) way.out.push_back(Cut::of(dim, segments));
    return way;
  }
  if (op.kind != "concat") return std::nullopt;
  Dims joined;
  way.in.clear();
  for (ValueId v : op.in) {
    bool parts = cut(v).kind == Cut::parts && cut(v).dim == dim;
    Dims segments = parts ? cut(v).segments : Dims{from_.type(v).dims[static_cast<size_t>(dim)]};
    joined.insert(joined.end(), segments.begin(), segments.end());
    way.in.push_back(Cut::of(dim, segments));
  }
  way.out = {Cut::of(dim, joined)};
  return way;
}

}  // namespace orrery
