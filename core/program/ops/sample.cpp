// SPDX-License-Identifier: Apache-2.0
//
// Choosing: argmax, topk and categorical over the last dim; iota. None has a gradient but topk's
// values, whose gradient goes to the chosen places.
#include <stdexcept>

#include "program/build.h"
#include "program/op.h"

namespace orrery {
namespace {

std::vector<Type> infer_rows(const OpArgs& args) {
  const Type& x = args.in[0];
  if (x.dims.empty()) throw std::invalid_argument("needs at least one dim, not " + to_string(x));
  Dims rows(x.dims.begin(), x.dims.end() - 1);
  return {{ORR_I64, rows}};
}

std::vector<Type> infer_topk(const OpArgs& args) {
  const Type& x = args.in[0];
  int64_t k = attr_int(args.attrs, "k", 1);
  if (x.dims.empty() || k < 1 || k > x.dims.back())
    throw std::invalid_argument("cannot take the top " + std::to_string(k) + " of " + to_string(x));
  Dims dims = x.dims;
  dims.back() = k;
  return {{x.dtype, dims}, {ORR_I64, dims}};
}

std::vector<Type> infer_iota(const OpArgs& args) {
  int64_t n = attr_int(args.attrs, "n", 0);
  if (n < 0) throw std::invalid_argument("cannot count to " + std::to_string(n));
  return {{static_cast<int32_t>(attr_int(args.attrs, "dtype", ORR_I32)), {n}}};
}

Sharding rows(const OpArgs& args, const std::vector<Type>& out) {
  return row_sharding(args, out, args.in[0].dims.size(), 1);
}

Sharding whole(const OpArgs&, const std::vector<Type>& out) {
  return {{}, {std::vector<int>(out[0].dims.size(), kNone)}};
}

// Rows are numbered by the random numbers, so the batch may be cut but scalars may not.
KernelForm form(const Op& op, const std::vector<Strided>& in, const std::vector<Strided>& out) {
  if (op.kind == "iota") return contiguous_form(in, out, "f");
  if (op.kind == "topk") return contiguous_form(in, out, "Rrr");
  KernelForm f = contiguous_form(in, out, op.kind == "categorical" ? "rffff" : "Rf");
  for (size_t i = 1; i < in.size(); ++i) f.in[i] = {in[i].dtype, {}, {}};
  return f;
}

void topk_gradient(Gradient& g, const Op& op) {
  if (g.dy() == kNone || !g.wanted(op.in[0])) return;
  Program& p = g.p;
  const Dims x = p.type(op.in[0]).dims, y = p.type(op.out[0]).dims;
  int64_t n = x.back();
  // One-hot of every chosen index, [..., k, n], times dy, summed over k.
  Dims wide = y;
  wide.push_back(1);
  ValueId index = build::reshape(p, op.out[1], wide), dy = build::reshape(p, g.dy(), wide);
  ValueId hit = p.pointwise(ORR_FN_EQ, {index, build::iota(p, n, ORR_I64)});
  ValueId mesh = p.pointwise(ORR_FN_SELECT, {hit, dy, Operand::number(0)});
  g.add(op.in[0], build::reduce(p, "sum", mesh, {static_cast<int64_t>(y.size()) - 1}, false));
}

}  // namespace

extern const OpDef argmax_op{"argmax", infer_rows, rows, nullptr, touch_cost, form};
extern const OpDef topk_op{"topk", infer_topk, rows, topk_gradient, touch_cost, form};
extern const OpDef categorical_op{"categorical", infer_rows, rows, nullptr, touch_cost, form};
extern const OpDef iota_op{"iota", infer_iota, whole, nullptr, touch_cost, form};

}  // namespace orrery
