// SPDX-License-Identifier: Apache-2.0
//
// reshape (ints "dims"): the same elements by other dims. Along a dim that is cut no byte moves if
// the shares of the result are the shares of what came in.
#include <algorithm>
#include <numeric>
#include <optional>
#include <stdexcept>

#include "program/build.h"
#include "program/on_parts.h"
#include "program/relate.h"

namespace orrery {
namespace {

std::vector<Type> infer_reshape(const OpArgs& args) {
  Type out{args.in[0].dtype, attr_ints(args.attrs, "dims")};
  bool negative = std::any_of(out.dims.begin(), out.dims.end(), [](int64_t d) { return d < 0; });
  if (negative || out.elements() != args.in[0].elements())
    throw std::invalid_argument("cannot see " + to_string(args.in[0].dims) + " (" +
                                std::to_string(args.in[0].elements()) + " elements) as " +
                                to_string(out.dims));
  return {out};
}

// The first dim of a group that is not 1 is the major one on both sides and carries its factor.
Sharding reshape_sharding(const OpArgs& args, const std::vector<Type>& out) {
  const Dims &a = args.in[0].dims, &b = out[0].dims;
  Sharding s;
  s.in = {std::vector<int>(a.size(), kNone)}, s.out = {std::vector<int>(b.size(), kNone)};
  auto major = [](const Dims& dims, const size_t(&range)[2]) {
    size_t d = range[0];
    while (d + 1 < range[1] && dims[d] == 1) ++d;
    return d;
  };
  int factor = 0;
  for (const SameElements& g : same_elements(a, b))
    s.in[0][major(a, g.in)] = s.out[0][major(b, g.out)] = factor++;
  return s;
}

void reshape_gradient(Gradient& g, const Op& op) {
  const ValueId x = op.in[0];
  if (!g.wanted(x)) return;
  const ValueId dx = build::reshape(g.p, g.dy(), g.p.type(x).dims);
  // Of a batch of one sample the extents alone do not tell which dim it is.
  if (g.p.value(dx).batch() == Batch::sharded && g.p.value(x).batch() == Batch::sharded)
    g.p.mutable_value(dx).set_batch(Batch::sharded, g.p.value(x).batch_dim());
  g.add(x, dx);
}

// -- along a dim that is cut ----------------------------------------------------------------------

int64_t product(const Dims& dims, size_t begin, size_t end) {
  return std::accumulate(dims.begin() + static_cast<long>(begin),
                         dims.begin() + static_cast<long>(end), int64_t{1}, std::multiplies<>());
}

// `flat` segments of neighbouring elements as segments of dim j of [b0, b1), if they are any. They
// are shared out in units of so many elements.
std::optional<Dims> along_dim(const Dims& flat, int64_t unit, const Dims& b, const SameElements& g,
                              size_t j, int ranks) {
  const int64_t repeats = product(b, g.out[0], j), inner = product(b, j + 1, g.out[1]);
  if (flat.size() == 1 && flat[0] == b[j] && repeats == 1 && inner == 1 && unit == 1)
    return flat;  // shares may be uneven
  const size_t n = flat.size() / static_cast<size_t>(repeats);
  if (!n || flat.size() % static_cast<size_t>(repeats)) return std::nullopt;
  Dims segments(flat.begin(), flat.begin() + static_cast<long>(n));
  for (size_t i = 0; i < flat.size(); ++i)
    if (flat[i] != segments[i % n]) return std::nullopt;
  for (int64_t& s : segments) {
    if (s % inner || s / inner % ranks || s / unit % ranks) return std::nullopt;
    s /= inner;
  }
  if (std::accumulate(segments.begin(), segments.end(), int64_t{0}) != b[j]) return std::nullopt;
  return segments;
}

std::optional<Placement> reshaped(const Placement& cut, const Dims& a, const Dims& b, int ranks) {
  const size_t dim = static_cast<size_t>(cut.dim);
  for (const SameElements& g : same_elements(a, b)) {
    if (dim < g.in[0] || dim >= g.in[1]) continue;
    const int64_t inner = product(a, dim + 1, g.in[1]);
    Dims flat;
    for (int64_t r = product(a, g.in[0], dim); r > 0; --r)
      for (int64_t s : cut.segments) flat.push_back(s * inner);
    for (size_t j = g.out[0]; j < g.out[1]; ++j)
      if (auto segments = along_dim(flat, inner, b, g, j, ranks))
        return Placement::along(static_cast<int>(j), *segments);
  }
  return std::nullopt;
}

std::vector<Way> options(const OnParts& s, const Op& op, const std::vector<Placement>& in) {
  if (in[0].kind != Placement::split) return linear_options(s, op, in);
  const auto to =
      reshaped(in[0], s.from.type(op.in[0]).dims, s.from.type(op.out[0]).dims, s.n_parts);
  return to ? std::vector{Way{in, {*to}}} : std::vector<Way>{};
}

constexpr PartsRule kParts{.options = options, .fit = fit_dims, .factors = false};

}  // namespace

std::vector<SameElements> same_elements(const Dims& a, const Dims& b) {
  std::vector<SameElements> found;
  size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    SameElements g{{i, 0}, {j, 0}};
    int64_t pa = a[i++], pb = b[j++];
    while (pa != pb) {
      if (pa < pb && i < a.size())
        pa *= a[i++];
      else if (pb < pa && j < b.size())
        pb *= b[j++];
      else
        return found;
    }
    g.in[1] = i, g.out[1] = j;
    found.push_back(g);
  }
  return found;
}

// As many elements stand before it on both sides. Of several such dims, which but the last are 1,
// it has the place that it had among those of `from`, if there is a 1.
int32_t dim_of_one(const Dims& from, const Dims& to, int32_t dim) {
  const auto beginning_with = [](const Dims& dims, int64_t before) {
    std::vector<size_t> found;
    for (size_t d = 0; d < dims.size(); ++d)
      if (product(dims, 0, d) == before) found.push_back(d);
    return found;
  };
  const int64_t before = product(from, 0, static_cast<size_t>(dim));
  std::vector<size_t> there = beginning_with(to, before);
  if (there.size() > 1 && to[there.back()] > 1) there.pop_back();
  if (there.empty()) return kNone;
  const size_t place = static_cast<size_t>(dim) - beginning_with(from, before).front();
  return static_cast<int32_t>(there[std::min(place, there.size() - 1)]);
}

extern const OpDef reshape_op =
    OpDef{"reshape", infer_reshape, reshape_sharding, reshape_gradient, no_cost, nullptr, &kParts}
        .with_eight_bits(takes_eight_bits);

}  // namespace orrery
