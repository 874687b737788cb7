// SPDX-License-Identifier: Apache-2.0
//
// Reading and writing at a run-time index: slice_at and update_slice along one dim (int "dim").
#include <stdexcept>

#include "program/axes.h"
#include "program/build.h"
#include "program/on_parts.h"

namespace orrery {
namespace {

size_t dim_of(const Attrs& attrs) { return static_cast<size_t>(attr_int(attrs, "dim", 0)); }

std::vector<Type> infer_slice_at(const OpArgs& args) {
  Type out = args.in[0];
  want_index(args.in[1]);
  size_t dim = dim_of(args.attrs);
  int64_t size = attr_int(args.attrs, "size", 1);
  if (dim >= out.dims.size() || size < 1 || size > out.dims[dim])
    throw std::invalid_argument("cannot take " + std::to_string(size) + " of dim " +
                                std::to_string(dim + 1) + " of " + to_string(out));
  out.dims[dim] = size;
  return {out};
}

std::vector<Type> infer_update_slice(const OpArgs& args) {
  const Type &x = args.in[0], &u = args.in[1];
  want_index(args.in[2]);
  size_t dim = dim_of(args.attrs);
  Dims rest = u.dims;
  if (u.dims.size() == x.dims.size() && dim < rest.size() && rest[dim] <= x.dims[dim])
    rest[dim] = x.dims[dim];
  if (u.dtype != x.dtype || rest != x.dims)
    throw std::invalid_argument("cannot write " + to_string(u) + " along dim " +
                                std::to_string(dim + 1) + " of " + to_string(x));
  return {x};
}

Sharding at_sharding(const OpArgs& args, const std::vector<Type>& out) {
  size_t dim = dim_of(args.attrs);
  auto dims = [&](const Type& t) {
    std::vector<int> f;
    for (size_t i = 0; i < t.dims.size(); ++i) f.push_back(i == dim ? kNone : static_cast<int>(i));
    return f;
  };
  Sharding s;
  for (const Type& t : args.in) s.in.push_back(dims(t));
  s.in.back().assign(args.in.back().dims.size(), kNone);
  s.out = {dims(out[0])};
  return s;
}

Strided around(const Strided& x, size_t dim) {
  Strided flat;
  regroup(Strided::contiguous({x.dtype, x.dims}),
          {{0, dim}, {dim, dim + 1}, {dim + 1, x.dims.size()}}, flat);
  return Strided::contiguous({x.dtype, flat.dims});
}

KernelForm at_form(const Op& op, const std::vector<Strided>& in, const std::vector<Strided>& out) {
  KernelForm f = contiguous_form(in, out, in.size() == 2 ? "fff" : "ffff");
  size_t dim = dim_of(op.attrs);
  for (size_t i = 0; i + 1 < in.size(); ++i) f.in[i] = around(in[i], dim);
  f.in.back() = {in.back().dtype, {}, {}};
  f.out[0] = around(out[0], dim);
  return f;
}

void slice_at_gradient(Gradient& g, const Op& op) {
  if (!g.wanted(op.in[0])) return;
  ValueId zeros = build::zeros_like(g.p, op.in[0]);
  g.add(op.in[0], g.p.add1("update_slice", {zeros, g.dy(), op.in[1]},
                           {{"dim", attr_int(op.attrs, "dim", 0)}}));
}

void update_slice_gradient(Gradient& g, const Op& op) {
  Program& p = g.p;
  int64_t dim = attr_int(op.attrs, "dim", 0);
  const Type u = p.type(op.in[1]);
  if (g.wanted(op.in[0])) {
    ValueId zeros = build::zeros_like(p, op.in[1]);
    g.add(op.in[0], p.add1("update_slice", {g.dy(), zeros, op.in[2]}, {{"dim", dim}}));
  }
  if (g.wanted(op.in[1]))
    g.add(op.in[1], build::slice_at(p, g.dy(), dim, op.in[2], u.dims[static_cast<size_t>(dim)]));
}

// At this rank's own coordinate, of a dim with one index for each: that is its part.
bool take_own(OnParts& s, const Op& op) {
  const OpId maker = s.from.value(op.in[1]).producer;
  if (maker == kNone || !has_axis(s.from.value(op.out[0]).varying(), s.me.axis)) return false;
  const Op& at = s.from.ops()[static_cast<size_t>(maker)];
  const int dim = static_cast<int>(dim_of(op.attrs));
  const int64_t extent = s.from.type(op.in[0]).dims[dim_of(op.attrs)];
  if (at.kind != "coordinate" || attr_text(at.attrs, "axis", "") != s.me.axis ||
      attr_int(op.attrs, "size", 1) != 1 || extent != s.me.ranks)
    return false;
  s.become(op.out[0], s.read(op.in[0], Placement::along(dim, {extent})), Placement{});
  return true;
}

constexpr PartsRule kParts{.run = take_own};

}  // namespace

extern const OpDef slice_at_op =
    OpDef{"slice_at", infer_slice_at, at_sharding, slice_at_gradient, touch_cost, at_form, &kParts}
        .with_eight_bits(takes_eight_bits);
extern const OpDef update_slice_op = OpDef{"update_slice",        infer_update_slice, at_sharding,
                                           update_slice_gradient, touch_cost,         at_form}
                                         .with_eight_bits(takes_eight_bits);

}  // namespace orrery
