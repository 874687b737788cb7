// SPDX-License-Identifier: Apache-2.0
//
// Where no byte moves: ops that only rename elements, along the dim that is cut, if the shares of
// the result are the shares of what came in; a rank that takes its own part of a value that is cut;
// and the ranks' own values, gathered into one, which can lie in parts.
#include <algorithm>
#include <numeric>

#include "lower/cut_pass.h"
#include "program/axes.h"
#include "program/build.h"
#include "program/relate.h"

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

int64_t product(const Dims& dims, size_t begin, size_t end) {
  return std::accumulate(dims.begin() + static_cast<long>(begin),
                         dims.begin() + static_cast<long>(end), int64_t{1}, std::multiplies<>());
}

// `flat` segments of neighbouring elements as segments of dim j of [b0, b1), if they are any.
std::optional<Dims> along_dim(const Dims& flat, const Dims& b, const SameElements& g, size_t j,
                              int ranks) {
  const int64_t repeats = product(b, g.out[0], j), inner = product(b, j + 1, g.out[1]);
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
  for (const SameElements& g : same_elements(a, b)) {
    if (dim < g.in[0] || dim >= g.in[1]) continue;
    const int64_t inner = product(a, dim + 1, g.in[1]);
    Dims flat;
    for (int64_t r = product(a, g.in[0], dim); r > 0; --r)
      for (int64_t s : cut.segments) flat.push_back(s * inner);
    for (size_t j = g.out[0]; j < g.out[1]; ++j)
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

// slice_at this rank's coordinate on the axis.
bool CutPass::take_own(const Op& op) {
  const OpId maker = op.kind == "slice_at" ? from_.value(op.in[1]).producer : kNone;
  if (maker == kNone) return false;
  const Op& at = from_.ops()[static_cast<size_t>(maker)];
  const int dim = static_cast<int>(attr_int(op.attrs, "dim", 0));
  const int64_t extent = from_.type(op.in[0]).dims[static_cast<size_t>(dim)];
  if (at.kind != "coordinate" || attr_text(at.attrs, "axis", "") != me_.axis ||
      attr_int(op.attrs, "size", 1) != 1 || extent != me_.ranks)
    return false;
  become(op.out[0], read(op.in[0], Cut::of(dim, {extent})), Cut{});
  return true;
}

bool CutPass::gather_own(const Op& op) {
  if (op.kind != "all_gather" || attr_text(op.attrs, "axis", "") != me_.axis) return false;
  if (op.attrs.count("counts") || parts_ != me_.ranks) return false;
  const ValueId x = read(op.in[0], Cut{});
  Dims dims = to_.type(x).dims;
  dims.insert(dims.begin(), 1);
  become(op.out[0], build::reshape(to_, x, dims), Cut::of(0, {me_.ranks}));
  return true;
}

// Of values that vary over the axis itself (program/varying.h) each rank has all of its own.
bool CutPass::varying(const Op& op) {
  if (gather_own(op)) return true;
  const bool varies = std::any_of(op.out.begin(), op.out.end(), [&](ValueId v) {
    return has_axis(from_.value(v).varying, me_.axis);
  });
  if (varies && !take_own(op)) emit(op, whole(op));
  return varies;
}

}  // namespace orrery
