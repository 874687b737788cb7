// SPDX-License-Identifier: Apache-2.0
//
// Reading and writing at run-time indices: gather rows of a table and its gradient scatter_add;
// slice_at and update_slice along one dim (int "dim").
#include <stdexcept>

#include "program/build.h"
#include "program/op.h"

namespace orrery {
namespace {

void want_index(const Type& t) {
  if (t.dtype != ORR_I32 && t.dtype != ORR_I64)
    throw std::invalid_argument("indices must be i32 or i64, not " + to_string(t));
}

size_t dim_of(const Attrs& attrs) { return static_cast<size_t>(attr_int(attrs, "dim", 0)); }

std::vector<Type> infer_gather(const OpArgs& args) {
  want_index(args.in[1]);
  if (args.in[0].dims.size() != 2)
    throw std::invalid_argument("the table must be [rows, width], not " + to_string(args.in[0]));
  Dims dims = args.in[1].dims;
  dims.push_back(args.in[0].dims[1]);
  return {{args.in[0].dtype, dims}};
}

Sharding gather_sharding(const OpArgs& args, const std::vector<Type>&) {
  Sharding s;
  std::vector<int> index;
  for (size_t i = 0; i < args.in[1].dims.size(); ++i) index.push_back(static_cast<int>(i));
  std::vector<int> y = index;
  int width = static_cast<int>(index.size());
  y.push_back(width);
  s.in = {{kNone, width}, index}, s.out = {y};
  return s;
}

void gather_gradient(Gradient& g, const Op& op) {
  if (!g.wanted(op.in[0])) return;
  Program& p = g.p;
  const Dims table = p.type(op.in[0]).dims;
  ValueId index = build::reshape(p, build::batch_first(p, op.in[1]), {-1});
  ValueId dy = build::reshape(p, build::batch_first(p, g.dy()), {-1, table[1]});
  g.add(op.in[0], p.add1("scatter_add", {index, dy}, {{"rows", table[0]}}));
}

KernelForm gather_form(const Op&, const std::vector<Layout>& in, const std::vector<Layout>& out) {
  return contiguous_form(in, out, "rfr");
}

std::vector<Type> infer_scatter(const OpArgs& args) {
  want_index(args.in[0]);
  if (args.in[1].dims.size() != 2 || args.in[0].dims != Dims{args.in[1].dims[0]})
    throw std::invalid_argument("needs index [n] and rows [n, width], not " +
                                to_string(args.in[0]) + " and " + to_string(args.in[1]));
  return {{sum_dtype(args.attrs, args.in[1].dtype),
           {attr_int(args.attrs, "rows", 0), args.in[1].dims[1]}}};
}

Sharding scatter_sharding(const OpArgs&, const std::vector<Type>&) {
  return {{{0}, {0, 1}}, {{kNone, 1}}};
}

void scatter_gradient(Gradient& g, const Op& op) {
  if (g.wanted(op.in[1])) g.add(op.in[1], build::gather(g.p, g.dy(), op.in[0]));
}

KernelForm scatter_form(const Op&, const std::vector<Layout>& in, const std::vector<Layout>& out) {
  return contiguous_form(in, out, in.size() == 3 ? "frrr" : "frr");
}

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

Layout around(const Layout& x, size_t dim) {
  Layout flat;
  regroup(Layout::contiguous({x.dtype, x.dims}),
          {{0, dim}, {dim, dim + 1}, {dim + 1, x.dims.size()}}, flat);
  return Layout::contiguous({x.dtype, flat.dims});
}

KernelForm at_form(const Op& op, const std::vector<Layout>& in, const std::vector<Layout>& out) {
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

}  // namespace

extern const OpDef gather_op{"gather",        infer_gather, gather_sharding,
                             gather_gradient, touch_cost,   gather_form};
extern const OpDef scatter_add_op{"scatter_add",    infer_scatter, scatter_sharding,
                                  scatter_gradient, touch_cost,    scatter_form};
extern const OpDef slice_at_op{"slice_at",        infer_slice_at, at_sharding,
                               slice_at_gradient, touch_cost,     at_form};
extern const OpDef update_slice_op{"update_slice",        infer_update_slice, at_sharding,
                                   update_slice_gradient, touch_cost,         at_form};

}  // namespace orrery
