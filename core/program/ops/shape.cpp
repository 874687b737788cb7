// SPDX-License-Identifier: Apache-2.0
//
// Ops that only rename elements, beside reshape: transpose (ints "perm"), split (int "dim", ints
// "sizes") and concat (int "dim"). Lowering turns them into views where strides allow.
#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "program/build.h"
#include "program/on_parts.h"
#include "program/strided.h"

namespace orrery {
namespace {

size_t dim_of(const Attrs& attrs) { return static_cast<size_t>(attr_int(attrs, "dim", 0)); }

std::vector<Type> infer_transpose(const OpArgs& args) {
  Dims perm = attr_ints(args.attrs, "perm"), seen(perm.size(), 0);
  Type out = args.in[0];
  bool ok = perm.size() == out.dims.size();
  for (size_t i = 0; ok && i < perm.size(); ++i) {
    ok = perm[i] >= 0 && perm[i] < static_cast<int64_t>(perm.size()) &&
         !seen[static_cast<size_t>(perm[i])]++;
    if (ok) out.dims[i] = args.in[0].dims[static_cast<size_t>(perm[i])];
  }
  if (!ok)
    throw std::invalid_argument("not a permutation of the dims of " + to_string(args.in[0].dims));
  return {out};
}

Sharding transpose_sharding(const OpArgs& args, const std::vector<Type>&) {
  Dims perm = attr_ints(args.attrs, "perm");
  Sharding s;
  s.in = {std::vector<int>(perm.size())}, s.out = s.in;
  for (size_t i = 0; i < perm.size(); ++i) {
    s.in[0][i] = static_cast<int>(i);
    s.out[0][i] = static_cast<int>(perm[i]);
  }
  return s;
}

void transpose_gradient(Gradient& g, const Op& op) {
  if (!g.wanted(op.in[0])) return;
  g.add(op.in[0], build::transpose(g.p, g.dy(), inverse(attr_ints(op.attrs, "perm"))));
}

std::vector<Type> infer_split(const OpArgs& args) {
  size_t dim = dim_of(args.attrs);
  Dims sizes = attr_ints(args.attrs, "sizes");
  const Dims& x = args.in[0].dims;
  int64_t sum = std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
  bool negative = std::any_of(sizes.begin(), sizes.end(), [](int64_t n) { return n < 0; });
  if (dim >= x.size() || sum != x[dim] || negative)
    throw std::invalid_argument("parts " + to_string(sizes) + " do not add up to dim " +
                                std::to_string(dim + 1) + " of " + to_string(x));
  std::vector<Type> out;
  for (int64_t n : sizes) {
    out.push_back(args.in[0]);
    out.back().dims[dim] = n;
  }
  return out;
}

std::vector<Type> infer_concat(const OpArgs& args) {
  size_t dim = dim_of(args.attrs);
  Type out = args.in[0];
  if (dim >= out.dims.size())
    throw std::invalid_argument("there is no dim " + std::to_string(dim + 1) + " in " +
                                to_string(out));
  for (size_t i = 1; i < args.in.size(); ++i) {
    Type rest = args.in[i];
    if (rest.dims.size() != out.dims.size() || rest.dtype != out.dtype)
      throw std::invalid_argument("cannot join " + to_string(out) + " and " + to_string(rest));
    out.dims[dim] += rest.dims[dim];
    rest.dims[dim] = out.dims[dim];
    if (rest.dims != out.dims)
      throw std::invalid_argument("cannot join " + to_string(args.in[0]) + " and " +
                                  to_string(args.in[i]) + " along dim " + std::to_string(dim + 1));
  }
  return {out};
}

// All dims but the one that is cut or joined.
Sharding parts_sharding(const OpArgs& args, const std::vector<Type>& out) {
  size_t dim = dim_of(args.attrs);
  auto dims = [&](const Type& t) {
    std::vector<int> f;
    for (size_t i = 0; i < t.dims.size(); ++i) f.push_back(i == dim ? kNone : static_cast<int>(i));
    return f;
  };
  Sharding s;
  for (const Type& t : args.in) s.in.push_back(dims(t));
  for (const Type& t : out) s.out.push_back(dims(t));
  s.segments = attr_ints(args.attrs, "sizes");
  return s;
}

void split_gradient(Gradient& g, const Op& op) {
  if (!g.wanted(op.in[0])) return;
  std::vector<ValueId> parts;
  for (size_t j = 0; j < op.out.size(); ++j) {
    ValueId dy = g.dy(static_cast<int>(j));
    parts.push_back(dy != kNone ? dy : build::zeros_like(g.p, op.out[j]));
  }
  g.add(op.in[0], build::concat(g.p, parts, attr_int(op.attrs, "dim", 0)));
}

void concat_gradient(Gradient& g, const Op& op) {
  Dims sizes;
  for (ValueId v : op.in) sizes.push_back(g.p.type(v).dims[dim_of(op.attrs)]);
  auto parts = build::split(g.p, g.dy(), attr_int(op.attrs, "dim", 0), sizes);
  for (size_t i = 0; i < op.in.size(); ++i)
    if (g.wanted(op.in[i])) g.add(op.in[i], parts[i]);
}

// -- along the dim that is cut or joined, where parts are parts of both sides ---------------------

// The segments that each part of a split consists of; nothing if a part ends inside a segment.
std::vector<Dims> segments_of_parts(const Dims& segments, const Dims& sizes) {
  std::vector<Dims> parts;
  size_t at = 0;
  for (int64_t size : sizes) {
    parts.emplace_back();
    for (int64_t sum = 0; sum < size;) {
      if (at == segments.size()) return {};
      sum += segments[at];
      parts.back().push_back(segments[at++]);
      if (sum > size) return {};
    }
  }
  return parts;
}

std::vector<Way> split_options(const OnParts& s, const Op& op, const std::vector<Placement>& in) {
  std::vector<Way> options = linear_options(s, op, in);
  const int dim = static_cast<int>(dim_of(op.attrs));
  if (!in[0].is_along(dim)) return options;
  Way way{in, {}};
  for (Dims& segments : segments_of_parts(in[0].segments, attr_ints(op.attrs, "sizes")))
    way.out.push_back(Placement::along(dim, std::move(segments)));
  if (!way.out.empty()) options.push_back(std::move(way));
  return options;
}

std::vector<Way> concat_options(const OnParts& s, const Op& op, const std::vector<Placement>& in) {
  std::vector<Way> options = linear_options(s, op, in);
  const int dim = static_cast<int>(dim_of(op.attrs));
  if (!in[0].is_along(dim)) return options;
  Way way;
  Dims joined;
  for (size_t i = 0; i < in.size(); ++i) {
    const Dims whole = {s.from.type(op.in[i]).dims[dim_of(op.attrs)]};
    const Dims& segments = in[i].is_along(dim) ? in[i].segments : whole;
    joined.insert(joined.end(), segments.begin(), segments.end());
    way.in.push_back(Placement::along(dim, segments));
  }
  way.out = {Placement::along(dim, joined)};
  options.push_back(std::move(way));
  return options;
}

void fit_sizes(Op& copy, const Program& p, const Way&, const Member&) {
  Dims sizes;
  for (ValueId v : copy.out) sizes.push_back(p.type(v).dims[dim_of(copy.attrs)]);
  copy.attrs.set("sizes", sizes);
}

// -- a first dim split into its indices, such as a matrix for each expert -------------------

// They lie on one rank whole, and what is computed of them is computed there.
bool split_to_owners(OnParts& s, const Op& op) {
  const Placement& whole = s.at(op.in[0]);
  const Dims sizes = attr_ints(op.attrs, "sizes");
  const bool each = std::all_of(sizes.begin(), sizes.end(), [](int64_t n) { return n == 1; });
  const bool met = s.from.value(op.in[0]).batch() == Batch::none && op.phase != Phase::update;
  if (s.over_batch && met) return false;  // by samples that stay on their ranks
  if (!whole.is_plain(0) || dim_of(op.attrs) != 0 || !each) return false;
  const ValueId x = s.read(op.in[0], whole);
  const std::vector<ValueId> mine =
      build::split(s.p, x, 0, Dims(static_cast<size_t>(s.p.type(x).dims[0]), 1));
  size_t next = 0;
  for (size_t j = 0; j < sizes.size(); ++j) {
    const int owner = s.owner_of(j, sizes.size());
    s.become(op.out[j], owner == s.me.rank ? mine[next++] : kNone, Placement::of_one(owner));
  }
  return true;
}

// Put together again they are the parts of a cut dim.
bool concat_owned(OnParts& s, const Op& op) {
  const size_t n = op.in.size();
  std::vector<ValueId> mine;
  for (size_t i = 0; i < n; ++i) {
    const bool one = s.from.type(op.in[i]).dims[dim_of(op.attrs)] == 1;
    const Placement owner = Placement::of_one(s.owner_of(i, n));
    if (!one || s.at(op.in[i]) != owner) return false;
    if (owner.owner() == s.me.rank) mine.push_back(s.read(op.in[i], owner));
  }
  const int dim = static_cast<int>(dim_of(op.attrs));
  s.become(op.out[0], build::concat(s.p, mine, dim),
           Placement::along(dim, {static_cast<int64_t>(n)}));
  return true;
}

constexpr PartsRule kSplitParts{.options = split_options, .run = split_to_owners, .fit = fit_sizes};
constexpr PartsRule kConcatParts{.options = concat_options, .run = concat_owned};

}  // namespace

extern const OpDef transpose_op =
    OpDef{"transpose", infer_transpose, transpose_sharding, transpose_gradient,
          no_cost,     nullptr,         &linear_parts}
        .with_eight_bits(takes_eight_bits);
extern const OpDef split_op =
    OpDef{"split", infer_split, parts_sharding, split_gradient, no_cost, nullptr, &kSplitParts}
        .with_eight_bits(takes_eight_bits);
extern const OpDef concat_op = OpDef{"concat",   infer_concat, parts_sharding, concat_gradient,
                                     touch_cost, nullptr,      &kConcatParts}
                                   .with_eight_bits(takes_eight_bits);

}  // namespace orrery
