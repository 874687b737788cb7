// SPDX-License-Identifier: Apache-2.0
//
// Ops that only rename elements: reshape (ints "dims"), transpose (ints "perm"), split (int "dim",
// ints "sizes") and concat (int "dim"). Lowering turns them into views where strides allow.
#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "program/build.h"
#include "program/op.h"
#include "program/relate.h"

namespace orrery {
namespace {

size_t dim_of(const Attrs& attrs) { return static_cast<size_t>(attr_int(attrs, "dim", 0)); }

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
  if (g.wanted(op.in[0])) g.add(op.in[0], build::reshape(g.p, g.dy(), g.p.type(op.in[0]).dims));
}

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
  Dims perm = attr_ints(op.attrs, "perm"), inverse(perm.size());
  for (size_t i = 0; i < perm.size(); ++i)
    inverse[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
  g.add(op.in[0], build::transpose(g.p, g.dy(), inverse));
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

Cost no_cost(const OpArgs&, const std::vector<Type>&) { return {}; }

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

int32_t dim_of_one(const Dims& from, const Dims& to, int32_t dim) {
  for (const SameElements& g : same_elements(from, to))
    if (static_cast<size_t>(dim) < g.in[1]) return static_cast<int32_t>(g.out[0]);
  return kNone;
}

extern const OpDef reshape_op{"reshape",        infer_reshape, reshape_sharding,
                              reshape_gradient, no_cost,       nullptr};
extern const OpDef transpose_op{"transpose",        infer_transpose, transpose_sharding,
                                transpose_gradient, no_cost,         nullptr};
extern const OpDef split_op{"split", infer_split, parts_sharding, split_gradient, no_cost, nullptr};
extern const OpDef concat_op{"concat",        infer_concat, parts_sharding,
                             concat_gradient, touch_cost,   nullptr};

}  // namespace orrery
