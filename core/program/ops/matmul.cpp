// SPDX-License-Identifier: Apache-2.0
//
// matmul: a[..., M, K] x b[..., K, N] -> [..., M, N]. ints "ta", "tb" say that the last two dims of
// a or b are stored transposed; b of rank 2 is shared by all leading dims of a. int "dtype": the
// result's. Of eight-bit factors, which need not be alike, it must be said.
//
// matmul_pointwise: a matmul and the pointwise op that reads it; inputs a, b and those of the
// expression but its input 0, which is the product. Lowering makes it
// (lower/kernels/fuse_products.cpp).
#include <orrery/kernel.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <string_view>

#include "base/error.h"
#include "program/build.h"
#include "program/eight_bits.h"
#include "program/op.h"
#include "program/wanted.h"

namespace orrery {
namespace {

struct Sizes {
  bool ta, tb;
  int64_t m, k, kb, n;
};

Sizes sizes(const OpArgs& args) {
  Sizes s{attr_int(args.attrs, "ta", 0) != 0, attr_int(args.attrs, "tb", 0) != 0, 0, 0, 0, 0};
  const Dims &a = args.in[0].dims, &b = args.in[1].dims;
  s.m = a[a.size() - (s.ta ? 1 : 2)], s.k = a[a.size() - (s.ta ? 2 : 1)];
  s.kb = b[b.size() - (s.tb ? 1 : 2)], s.n = b[b.size() - (s.tb ? 2 : 1)];
  return s;
}

// The dtype of the result of eight-bit factors, which hold too little for sums.
int32_t said_dtype(const OpArgs& args) {
  const int32_t dtype = sum_dtype(args.attrs, 0);
  if (dtype != ORR_F32 && dtype != ORR_BF16 && dtype != ORR_F16)
    throw std::invalid_argument(fmt::format(
        "the product of {} and {} needs a dtype, f32, bf16 or f16: cast the factors to one with "
        "x:cast(\"bf16\"), which changes no value",
        dtype_name(args.in[0].dtype), dtype_name(args.in[1].dtype)));
  return dtype;
}

int32_t result_dtype(const OpArgs& args) {
  const Type &a = args.in[0], &b = args.in[1];
  if (is_eight_bits(a.dtype) && is_eight_bits(b.dtype)) return said_dtype(args);
  if (a.dtype == b.dtype && is_real(a.dtype)) return sum_dtype(args.attrs, a.dtype);
  throw std::invalid_argument(std::string("needs two real tensors of one dtype, not ") +
                              dtype_name(a.dtype) + " and " + dtype_name(b.dtype) +
                              how_to_make_real(is_real(a.dtype) ? b.dtype : a.dtype));
}

std::vector<Type> infer(const OpArgs& args) {
  const Type &a = args.in[0], &b = args.in[1];
  std::string shapes = to_string(a.dims) + " x " + to_string(b.dims);
  if (a.dims.size() < 2 || b.dims.size() < 2)
    throw std::invalid_argument("needs at least two dims on both sides: " + shapes);
  const int32_t dtype = result_dtype(args);
  Sizes s = sizes(args);
  if (s.k != s.kb) throw std::invalid_argument("inner sizes differ: " + shapes);
  Dims lead(a.dims.begin(), a.dims.end() - 2), lead_b(b.dims.begin(), b.dims.end() - 2);
  if (!lead_b.empty() && lead != lead_b)
    throw std::invalid_argument("leading sizes differ: " + shapes);
  lead.push_back(s.m), lead.push_back(s.n);
  return {{dtype, lead}};
}

Sharding sharding(const OpArgs& args, const std::vector<Type>&) {
  Sizes s = sizes(args);
  int lead = static_cast<int>(args.in[0].dims.size()) - 2, m = lead, n = lead + 1, k = lead + 2;
  Sharding r;
  std::vector<int> a, b, y;
  for (int i = 0; i < lead; ++i) a.push_back(i), y.push_back(i);
  if (args.in[1].dims.size() > 2) b = a;
  a.push_back(s.ta ? k : m), a.push_back(s.ta ? m : k);
  b.push_back(s.tb ? n : k), b.push_back(s.tb ? k : n);
  y.push_back(m), y.push_back(n);
  r.in = {a, b}, r.out = {y};
  return r;
}

int64_t elements_of(const Strided& x) { return Type{x.dtype, x.dims}.elements(); }

// [..] as [G, X, Y] or, with the leading dims merged into X, [1, G*X, Y]; transposed back if stored
// so.
bool as_matrix(const Strided& x, bool transposed, bool merge_lead, Strided& out) {
  size_t r = x.dims.size();
  Strided m = x;
  if (transposed)
    std::swap(m.dims[r - 1], m.dims[r - 2]), std::swap(m.strides[r - 1], m.strides[r - 2]);
  bool ok = merge_lead ? regroup(m, {{0, 0}, {0, r - 1}, {r - 1, r}}, out)
                       : regroup(m, {{0, r - 2}, {r - 2, r - 1}, {r - 1, r}}, out);
  // A dim of extent 1 has any stride. It keeps its own where a kernel may look at it, so that one
  // row has the algorithm of many (orr_device_facts.row_alignment).
  for (size_t i : {1, 2})
    if (ok && out.dims[i] == 1) out.strides[i] = m.strides[r - 3 + i];
  return ok && (out.strides[1] == 1 || out.strides[2] == 1 || out.dims[1] == 1 || out.dims[2] == 1);
}

void unit_stride(Strided& x) {
  if (x.strides[1] == 1 || x.strides[2] == 1) return;
  if (x.dims[2] == 1)
    x.strides[2] = 1;
  else if (x.dims[1] == 1)
    x.strides[1] = 1;
}

// Appends dims [begin, end) of x, where neighbours that lie so that they are one dim become one.
void append_merged(const Strided& x, size_t begin, size_t end, Strided& out) {
  while (begin < end) {
    int64_t dim, stride;
    size_t next = end;
    while (!merge_dims(x, begin, next, dim, stride)) --next;
    out.dims.push_back(dim), out.strides.push_back(stride);
    begin = next;
  }
}

// x, whose first dims hold `groups` and whose last ones `columns` elements, as [groups, rows...,
// columns...]; columns end with neighbours.
bool as_nested(const Strided& x, int64_t groups, int64_t columns, Strided& out) {
  size_t first = x.dims.size() - 1, lead = 0;
  for (int64_t n = x.dims[first]; n < columns; n *= x.dims[first]) --first;
  int64_t n = 1, group = 0;
  while (n < groups) n *= x.dims[lead++];
  if (n != groups || lead > first || !merge_dims(x, 0, lead, n, group)) return false;
  out = {x.dtype, {groups}, {groups == 1 ? 0 : group}};
  if (lead == first)  // one row, of which all dims are columns
    out.dims.push_back(1), out.strides.push_back(columns);
  else
    append_merged(x, lead, first, out);
  append_merged(x, first, x.dims.size(), out);
  return out.strides.back() == 1 && out.dims.size() <= ORR_MAX_RANK;
}

// Input i as kernels get it: a matrix, or if `columns` is not 0 perhaps nested dims of so many
// groups. `rank`: the dims of the value; its place may have more of them (lower/kernels/place.cpp).
void take(KernelForm& f, size_t i, const Strided& x, size_t rank, bool transposed, bool merge_lead,
          int64_t groups, int64_t columns) {
  if (x.dims.size() == rank && as_matrix(x, transposed, merge_lead, f.in[i])) return;
  const bool nested = columns > 0 && as_nested(x, groups, columns, f.in[i]);
  if (!nested) f.copy.push_back(static_cast<int>(i));
  if (nested && f.in[i].dims.size() > 3) f.nested.push_back(static_cast<int>(i));
}

KernelForm form(const Op& op, const std::vector<Strided>& in, const std::vector<Strided>& out) {
  bool ta = attr_int(op.attrs, "ta", 0) != 0, tb = attr_int(op.attrs, "tb", 0) != 0;
  const Dims& y = out[0].dims;
  bool shared = in[1].dims.size() == 2;
  bool merge = shared && !ta;
  KernelForm f;
  f.in.resize(2), f.out.resize(1);
  const bool a_nests = merge || (!ta && y.size() > 2 && in[1].dims.size() == y.size());
  const int64_t rows = a_nests ? elements_of(out[0]) / std::max<int64_t>(y.back(), 1) : 0;
  int64_t groups = 1;
  for (size_t i = 0; i + 2 < y.size() && !shared; ++i) groups *= y[i];
  take(f, 0, in[0], y.size(), ta, merge, groups, rows > 0 ? elements_of(in[0]) / rows : 0);
  take(f, 1, in[1], shared ? 2 : y.size(), tb, false, groups, shared || tb ? 0 : y.back());
  f.out_ok = as_matrix(out[0], false, merge, f.out[0]) &&
             (f.out[0].strides[2] == 1 || f.out[0].dims[2] == 1);
  for (Strided& x : f.in) unit_stride(x);
  if (f.in[0].dims[0] != f.in[1].dims[0]) f.in[1].dims[0] = f.in[0].dims[0], f.in[1].strides[0] = 0;
  if (f.out[0].dims[2] == 1) f.out[0].strides[2] = 1;
  // With microbatches, nodes lie one after another: the stride of the absent G says how far apart.
  if (f.out[0].dims[0] == 1) f.out[0].strides[0] = f.out[0].dims[1] * f.out[0].dims[2];
  return f;
}

// The gradient of matrices that all samples share: a sum over the batch is one matrix's, so each is
// summed for itself.
ValueId shared_matrices(Program& p, ValueId a, ValueId dy, bool ta, bool tb, Dims dims) {
  // Only dims before the last two change; the batch dim, one of these, stays as far from the end.
  auto reshaped = [&](ValueId x, const Dims& to) {
    const auto behind = static_cast<int32_t>(p.type(x).dims.size()) - p.value(x).batch_dim();
    ValueId y = build::reshape(p, x, to);
    if (p.value(y).batch() == Batch::sharded && behind <= 2)
      p.mutable_value(y).set_batch(Batch::sharded,
                                   static_cast<int32_t>(p.type(y).dims.size()) - behind);
    return y;
  };
  auto matrices_of = [&](ValueId x) {
    const Dims d = p.type(x).dims;
    ValueId rows = reshaped(x, {-1, d.end()[-2], d.back()});
    std::vector<ValueId> each =
        build::split(p, rows, 0, Dims(static_cast<size_t>(p.type(rows).dims[0]), 1));
    for (ValueId& m : each) m = reshaped(m, {d.end()[-2], d.back()});
    return each;
  };
  std::vector<ValueId> as = matrices_of(a), dys = matrices_of(dy), found;
  for (size_t i = 0; i < as.size(); ++i) {
    ValueId d = tb ? build::matmul(p, dys[i], as[i], true, ta)
                   : build::matmul(p, as[i], dys[i], !ta, false);
    found.push_back(build::reshape(p, d, {1, dims.end()[-2], dims.back()}));
  }
  return build::reshape(p, build::concat(p, found, 0), dims);
}

// With A' the matrix a stands for: dA' = dY B'^T, dB' = A'^T dY; stored transposes are swapped in.
void gradient(Gradient& g, const Op& op) {
  Program& p = g.p;
  bool ta = attr_int(op.attrs, "ta", 0) != 0, tb = attr_int(op.attrs, "tb", 0) != 0;
  ValueId a = op.in[0], b = op.in[1], dy = g.dy();
  bool shared = p.type(b).dims.size() == 2 && p.type(a).dims.size() > 2;
  if (g.wanted(a)) {
    if (!ta)
      g.add(a, build::matmul(p, dy, b, false, !tb));
    else if (!shared)
      g.add(a, build::matmul(p, b, dy, tb, true));
    else
      g.add(a, build::swap_last(p, build::matmul(p, dy, b, false, !tb)));
  }
  if (!g.wanted(b)) return;
  if (shared) {
    if (ta) a = build::swap_last(p, a), ta = false;
    a = build::reshape(p, build::batch_first(p, a), {-1, p.type(a).dims.back()});
    dy = build::reshape(p, build::batch_first(p, dy), {-1, p.type(dy).dims.back()});
  } else if (p.type(b).dims.size() > 2 && p.value(dy).batch() == Batch::sharded &&
             p.value(b).batch() != Batch::sharded) {
    return g.add(b, shared_matrices(p, a, dy, ta, tb, p.type(b).dims));
  }
  g.add(b, tb ? build::matmul(p, dy, a, true, ta) : build::matmul(p, a, dy, !ta, false));
}

Cost cost(const OpArgs& args, const std::vector<Type>& out) {
  Cost c = touch_cost(args, out);
  c.matrix = true;
  c.flops =
      2.0 * static_cast<double>(args.in[0].elements()) * static_cast<double>(out[0].dims.back());
  return c;
}

// The two ops that a matmul_pointwise stands for.
const Attrs kNoAttrs;
const Expr kNoExpr;
OpArgs product_args(const OpArgs& both) {
  return {both.kind, both.attrs, kNoExpr, {both.in.begin(), both.in.begin() + 2}};
}
OpArgs rest_args(const OpArgs& both, const Type& product) {
  OpArgs rest{both.kind, kNoAttrs, both.expr, {product}};
  rest.in.insert(rest.in.end(), both.in.begin() + 2, both.in.end());
  return rest;
}
OpArgs rest_args(const OpArgs& both) { return rest_args(both, infer(product_args(both))[0]); }

std::vector<Type> infer_both(const OpArgs& args) {
  if (args.in.size() < 2 || args.expr.outputs.empty())
    throw std::invalid_argument("is made of a matmul and a pointwise op when a step is lowered");
  return op_def("pointwise").infer(rest_args(args));
}

Sharding sharding_both(const OpArgs& args, const std::vector<Type>& out) {
  const OpArgs rest = rest_args(args);
  Sharding s = sharding(product_args(args), {rest.in[0]});
  for (std::vector<int>& dims : s.in)  // what follows needs whole sums
    for (int& d : dims)
      if (std::find(s.out[0].begin(), s.out[0].end(), d) == s.out[0].end()) d = kNone;
  const std::vector<int> factors = s.out[0];
  auto along = [&](std::vector<int> dims) {  // dims of the result to factors of the product
    for (int& d : dims)
      if (d != kNone) d = factors[static_cast<size_t>(d)];
    return dims;
  };
  Sharding pointwise = op_def("pointwise").sharding(rest, out);
  for (size_t i = 1; i < pointwise.in.size(); ++i) s.in.push_back(along(pointwise.in[i]));
  s.out.clear();
  for (std::vector<int>& dims : pointwise.out) s.out.push_back(along(std::move(dims)));
  return s;
}

// Where windows lie they have more dims than the product infers from.
Cost cost_both(const OpArgs& args, const std::vector<Type>& out) {
  const OpArgs rest = rest_args(args, {args.in[0].dtype, out[0].dims});
  Cost c = touch_cost(args, out);
  c.matrix = true;
  c.flops = cost(product_args(args), {rest.in[0]}).flops;
  c.flops += op_def("pointwise").cost(rest, out).flops;
  return c;
}

// x as the kernel sees the result that it meets, [G, M, N]; false if its strides do not allow it.
bool beside(const Strided& x, const Dims& dims, bool merge_lead, Strided& out) {
  Strided whole{x.dtype, dims, strides_in(x, dims)};
  const size_t r = dims.size(), lead = merge_lead ? 0 : r - 2;
  return regroup(whole, {{0, lead}, {lead, r - 1}, {r - 1, r}}, out);
}

KernelForm form_both(const Op& op, const std::vector<Strided>& in,
                     const std::vector<Strided>& out) {
  KernelForm f = form(op, {in[0], in[1]}, {out[0]});
  const bool merge = in[1].dims.size() == 2 && !attr_int(op.attrs, "ta", 0);
  for (size_t i = 2; i < in.size(); ++i)
    if (!beside(in[i], out[0].dims, merge, f.in.emplace_back()))
      f.copy.push_back(static_cast<int>(i));
  for (size_t j = 1; j < out.size(); ++j)
    f.out_ok = beside(out[j], out[0].dims, merge, f.out.emplace_back()) && f.out_ok;
  return f;
}

// Sums of several groups, which kernels did not always know.
uint32_t must_take(const orr_op& op) {
  const orr_tensor &a = op.in[0], &b = op.in[1];
  const bool leaves = std::any_of(op.attrs, op.attrs + op.n_attrs, [](const orr_attr& each) {
    return std::string_view(each.name) == "leaf_n";
  });
  return a.dims[0] > 1 && (leaves || a.rank > 3 || b.rank > 3) ? ORR_TAKES_GROUPED_SUMS : 0;
}

}  // namespace

extern const OpDef matmul_op = OpDef{.kind = "matmul",
                                     .infer = infer,
                                     .sharding = sharding,
                                     .gradient = gradient,
                                     .cost = cost,
                                     .form = form,
                                     .must_take = must_take}
                                   .with_eight_bits(takes_eight_bits);
extern const OpDef matmul_pointwise_op = OpDef{.kind = "matmul_pointwise",
                                               .infer = infer_both,
                                               .sharding = sharding_both,
                                               .gradient = nullptr,
                                               .cost = cost_both,
                                               .form = form_both,
                                               .must_take = must_take}
                                             .with_eight_bits(takes_eight_bits);

}  // namespace orrery
