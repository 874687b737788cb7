// SPDX-License-Identifier: Apache-2.0
//
// reduce: text "fn" (sum, sumsq, max, min) over neighbouring dims [int "begin", int "end"), which
// are dropped from the result. Several runs of dims are several reduces (build::reduce).
//
// int "dtype" of sums: what they are stored in.
#include <stdexcept>

#include "program/build.h"
#include "program/op.h"

namespace orrery {
namespace {

std::pair<size_t, size_t> range(const Attrs& attrs) {
  return {static_cast<size_t>(attr_int(attrs, "begin", 0)),
          static_cast<size_t>(attr_int(attrs, "end", 0))};
}

std::vector<Type> infer(const OpArgs& args) {
  auto [begin, end] = range(args.attrs);
  Type out = args.in[0];
  if (begin > end || end > out.dims.size())
    throw std::invalid_argument("there are no dims " + std::to_string(begin + 1) + " to " +
                                std::to_string(end) + " in " + to_string(out));
  std::string fn = attr_text(args.attrs, "fn", "");
  if (out.dtype == ORR_BOOL) throw std::invalid_argument("cannot reduce bool: cast it first");
  if (fn == "sumsq" && !is_real(out.dtype))
    throw std::invalid_argument("sumsq needs a real tensor");
  out.dims.erase(out.dims.begin() + static_cast<long>(begin),
                 out.dims.begin() + static_cast<long>(end));
  out.dtype = sum_dtype(args.attrs, out.dtype);
  return {out};
}

Sharding sharding(const OpArgs& args, const std::vector<Type>&) {
  auto [begin, end] = range(args.attrs);
  Sharding s;
  s.in.resize(1), s.out.resize(1);
  s.sums = attr_text(args.attrs, "fn", "").starts_with("sum");
  for (size_t i = 0; i < args.in[0].dims.size(); ++i) {
    s.in[0].push_back(static_cast<int>(i));
    if (i < begin || i >= end) s.out[0].push_back(static_cast<int>(i));
  }
  return s;
}

// x as [O,K,I], with the strides that it has where its dims can be joined to these.
KernelForm form(const Op& op, const std::vector<Strided>& in, const std::vector<Strided>& out) {
  KernelForm f = contiguous_form(in, out, "ff");
  auto [begin, end] = range(op.attrs);
  const auto joined = [&, begin = begin, end = end](const Strided& x) {
    return regroup(x, {{0, begin}, {begin, end}, {end, x.dims.size()}}, f.in[0]);
  };
  f.in.resize(1), f.copy.clear();
  if (!joined(in[0])) {
    f.copy = {0};
    joined(Strided::contiguous({in[0].dtype, in[0].dims}));
  }
  f.out = {Strided::contiguous({out[0].dtype, {f.in[0].dims[0], f.in[0].dims[2]}})};
  return f;
}

void gradient(Gradient& g, const Op& op) {
  Program& p = g.p;
  std::string fn = attr_text(op.attrs, "fn", "");
  auto [begin, end] = range(op.attrs);
  ValueId x = op.in[0];
  if (!g.wanted(x)) return;
  Dims full = p.type(x).dims, kept = full;
  for (size_t i = begin; i < end; ++i) kept[i] = 1;
  auto widen = [&](ValueId v) { return build::reshape(p, v, kept); };
  ValueId dy = widen(g.dy());
  if (fn == "sum") return g.add(x, build::broadcast_like(p, dy, x));
  if (fn == "sumsq") {
    ValueId twice = p.pointwise(ORR_FN_MUL, {x, Operand::number(2)});
    return g.add(x, p.pointwise(ORR_FN_MUL, {twice, dy}));
  }
  // max, min: in equal parts to the elements that attain it.
  ValueId hit = p.pointwise(ORR_FN_EQ, {x, widen(op.out[0])});
  Attrs sum = op.attrs;
  sum.set("fn", std::string("sum"));
  ValueId hits = widen(p.add1("reduce", {p.cast(hit, p.type(x).dtype)}, sum));
  ValueId share = p.pointwise(ORR_FN_DIV, {dy, hits});
  g.add(x, p.pointwise(ORR_FN_SELECT, {hit, share, Operand::number(0)}));
}

}  // namespace

extern const OpDef reduce_op{"reduce", infer, sharding, gradient, touch_cost, form};

}  // namespace orrery
