// SPDX-License-Identifier: Apache-2.0
//
// gather_matmul: x[..., d], w[E, d, f], index[...] -> y[..., f]: each row of x times the matrix of
// its index, or 0 where that is -1. int "tb": the matrices are stored as [E, f, d].
// scatter_matmul, the gradient of w: x[n, d], dy[n, f], index[n] -> dw[E, d, f], where E is int
// "matrices". The matrices may be cut by number, as experts are over ranks: each rank then
// multiplies the rows of its own, the others are 0, and the ranks' results are summed.
#include "program/build_gather_matmul.h"

#include <stdexcept>
#include <utility>

#include "base/error.h"
#include "program/build.h"
#include "program/on_parts.h"

namespace orrery {
namespace {

bool is_turned(const Attrs& attrs) { return attr_int(attrs, "tb", 0) != 0; }

void want_reals(const Type& x, const Type& y) {
  if (x.dtype != y.dtype || !is_real(x.dtype))
    throw std::invalid_argument(std::string("needs two real tensors of one dtype, not ") +
                                dtype_name(x.dtype) + " and " + dtype_name(y.dtype));
}

std::vector<Type> infer_gather(const OpArgs& args) {
  const Type &x = args.in[0], &w = args.in[1], &index = args.in[2];
  want_index(index);
  want_reals(x, w);
  if (x.dims.empty() || w.dims.size() != 3)
    throw std::invalid_argument("needs rows [..., d] and matrices [number, d, outputs], not " +
                                to_string(x) + " and " + to_string(w));
  const bool tb = is_turned(args.attrs);
  if (x.dims.back() != w.dims[tb ? 2 : 1])
    throw std::invalid_argument("inner sizes differ: " + to_string(x.dims) + " x " +
                                to_string(w.dims) + (tb ? ", each transposed" : ""));
  Dims dims(x.dims.begin(), x.dims.end() - 1);
  if (index.dims != dims)
    throw std::invalid_argument("an index for each row, " + to_string(dims) + ", is wanted, not " +
                                to_string(index));
  dims.push_back(w.dims[tb ? 1 : 2]);
  return {{x.dtype, dims}};
}

Sharding gather_sharding(const OpArgs& args, const std::vector<Type>&) {
  std::vector<int> index;
  for (size_t i = 0; i < args.in[2].dims.size(); ++i) index.push_back(static_cast<int>(i));
  const int f = static_cast<int>(index.size()), d = f + 1;
  std::vector<int> x = index, y = index;
  x.push_back(d), y.push_back(f);
  const bool tb = is_turned(args.attrs);
  return {{x, {kNone, tb ? f : d, tb ? d : f}, index}, {y}};
}

ValueId scattered(Program& p, ValueId index, ValueId x, ValueId dy, int64_t matrices) {
  const auto rows = [&](ValueId v) {
    return build::reshape(p, build::batch_first(p, v), {-1, p.type(v).dims.back()});
  };
  index = build::reshape(p, build::batch_first(p, index), {-1});
  return p.add1("scatter_matmul", {rows(x), rows(dy), index}, {{"matrices", matrices}});
}

void gather_gradient(Gradient& g, const Op& op) {
  Program& p = g.p;
  const ValueId x = op.in[0], w = op.in[1], index = op.in[2], dy = g.dy();
  const bool tb = is_turned(op.attrs);
  if (g.wanted(x)) g.add(x, build::gather_matmul(p, dy, w, index, !tb));
  if (!g.wanted(w)) return;
  const int64_t matrices = p.type(w).dims[0];
  g.add(w, tb ? scattered(p, index, dy, x, matrices) : scattered(p, index, x, dy, matrices));
}

// Two flops for each element of the rows and column of a matrix.
Cost product_cost(const OpArgs& args, const std::vector<Type>& out, const Type& rows,
                  int64_t columns) {
  Cost c = touch_cost(args, out);
  c.matrix = true;
  c.flops = 2.0 * static_cast<double>(rows.elements()) * static_cast<double>(columns);
  return c;
}

Cost gather_cost(const OpArgs& args, const std::vector<Type>& out) {
  return product_cost(args, out, args.in[0], out[0].dims.back());
}

// The matrices as kernels get them, [E, d, f]; false if they are stored in a way that they do not.
bool as_matrices(Strided w, bool turned, Strided& to) {
  if (w.dims.size() != 3) return false;
  if (turned) std::swap(w.dims[1], w.dims[2]), std::swap(w.strides[1], w.strides[2]);
  if (w.strides[1] != 1 && w.strides[2] != 1) {
    if (w.dims[2] == 1) w.strides[2] = 1;
    if (w.dims[1] == 1) w.strides[1] = 1;
  }
  to = w;
  return w.strides[1] == 1 || w.strides[2] == 1;
}

KernelForm gather_form(const Op& op, const std::vector<Strided>& in,
                       const std::vector<Strided>& out) {
  KernelForm form = contiguous_form({in[0], in[2]}, out, "rfr");
  for (int& i : form.copy) i *= 2;
  form.in.insert(form.in.begin() + 1, Strided{});
  if (!as_matrices(in[1], is_turned(op.attrs), form.in[1])) form.copy.push_back(1);
  return form;
}

std::vector<Type> infer_scatter(const OpArgs& args) {
  const Type &x = args.in[0], &dy = args.in[1], &index = args.in[2];
  want_index(index);
  want_reals(x, dy);
  if (x.dims.size() != 2 || dy.dims.size() != 2 || index.dims != Dims{x.dims[0]} ||
      dy.dims[0] != x.dims[0])
    throw std::invalid_argument("needs rows [n, d] and [n, f] and an index [n], not " +
                                to_string(x) + ", " + to_string(dy) + " and " + to_string(index));
  return {{sum_dtype(args.attrs, x.dtype),
           {attr_int(args.attrs, "matrices", 0), x.dims[1], dy.dims[1]}}};
}

Sharding scatter_sharding(const OpArgs&, const std::vector<Type>&) {
  return {{{0, 1}, {0, 2}, {0}}, {{kNone, 1, 2}}};
}

void scatter_gradient(Gradient& g, const Op& op) {
  const ValueId x = op.in[0], dy = op.in[1], index = op.in[2], dw = g.dy();
  if (g.wanted(x)) g.add(x, build::gather_matmul(g.p, dy, dw, index, true));
  if (g.wanted(dy)) g.add(dy, build::gather_matmul(g.p, x, dw, index, false));
}

Cost scatter_cost(const OpArgs& args, const std::vector<Type>& out) {
  return product_cost(args, out, args.in[0], args.in[1].dims.back());
}

KernelForm scatter_form(const Op&, const std::vector<Strided>& in,
                        const std::vector<Strided>& out) {
  KernelForm form = contiguous_form(in, out, "rrfr");
  form.out[0] = Strided::contiguous({out[0].dtype, out[0].dims});
  return form;
}

// -- on a part of the matrices --------------------------------------------------------------------

// The indices as they count in the part of `owner`, and -1 where another one has the matrix.
ValueId own_index(OnParts& s, ValueId index, int64_t matrices, const Member& owner) {
  const PartIndex at =
      index_in_part(s.p, s.read(index, Placement{}), matrices, owner, s.me.begin(matrices));
  if (at.inside == kNone) return at.index;
  return s.p.pointwise(ORR_FN_SELECT, {at.inside, at.index, Operand::number(-1)});
}

bool gather_of_part(OnParts& s, const Op& op) {
  if (s.over_batch || !s.at(op.in[1]).is_plain(0)) return false;
  const int64_t matrices = s.from.type(op.in[1]).dims[0];
  const ValueId x = s.read(op.in[0], Placement{}), w = s.read(op.in[1], s.at(op.in[1]));
  std::vector<ValueId> found;
  for (int i = 0; i < s.n_chunks; ++i)
    found.push_back(
        s.p.add1(op.kind, {x, w, own_index(s, op.in[2], matrices, s.chunk(i))}, op.attrs));
  s.become_sum(op.out[0], std::move(found));
  return true;
}

// The matrices of which this is the gradient are cut so, and each rank makes its own.
bool scatter_to_part(OnParts& s, const Op& op) {
  if (s.over_batch || op.twin == kNone) return false;
  const Op& twin = s.from.ops()[static_cast<size_t>(op.twin)];
  if (twin.kind != "gather_matmul" || !s.at(twin.in[1]).is_plain(0)) return false;
  const Type& whole = s.from.type(op.out[0]);
  const Placement matrices = Placement::along(0, {whole.dims[0]});
  Op copy = op;
  copy.in = {s.read(op.in[0], Placement{}), s.read(op.in[1], Placement{}),
             own_index(s, op.in[2], whole.dims[0], s.me)};
  s.p.mutable_value(op.out[0]).type = held(whole, matrices, s.me);
  copy.attrs.set("matrices", s.p.type(op.out[0]).dims[0]);
  s.p.append(std::move(copy));
  s.become(op.out[0], op.out[0], matrices);
  return true;
}

constexpr PartsRule kGatherParts{.run = gather_of_part}, kScatterParts{.run = scatter_to_part};

}  // namespace

ValueId build::gather_matmul(Program& p, ValueId x, ValueId w, ValueId index, bool transpose_b) {
  Attrs attrs;
  if (transpose_b) attrs.set("tb", int64_t{1});
  return p.add1("gather_matmul", {x, w, index}, attrs);
}

extern const OpDef gather_matmul_op{"gather_matmul", infer_gather, gather_sharding, gather_gradient,
                                    gather_cost,     gather_form,  &kGatherParts};
extern const OpDef scatter_matmul_op{"scatter_matmul", infer_scatter, scatter_sharding,
                                     scatter_gradient, scatter_cost,  scatter_form,
                                     &kScatterParts};

}  // namespace orrery
