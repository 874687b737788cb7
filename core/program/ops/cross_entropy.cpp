// SPDX-License-Identifier: Apache-2.0
//
// cross_entropy: logits[..., V], labels[...], weights[...] -> weighted loss[...], lse[...] for each
// row, and its gradient with respect to the logits. Classes may be cut over ranks, also unevenly.
// Lowering makes one op of both (lower/kernels/join_losses.cpp).
#include <stdexcept>

#include "program/autodiff.h"
#include "program/build.h"
#include "program/on_parts.h"
#include "program/wanted.h"

namespace orrery {
namespace {

int32_t loss_dtype(int32_t logits) { return logits == ORR_F64 ? ORR_F64 : ORR_F32; }

std::vector<Type> infer(const OpArgs& args) {
  const Type &x = args.in[0], &labels = args.in[1], &w = args.in[2];
  if (x.dims.empty() || !is_real(x.dtype))
    throw std::invalid_argument("needs real logits [..., classes], not " + to_string(x) +
                                how_to_make_real(x.dtype));
  Dims rows(x.dims.begin(), x.dims.end() - 1);
  if (labels.dims != rows)
    throw std::invalid_argument("labels are " + to_string(labels.dims) + " but logits " +
                                to_string(x.dims) + " want " + to_string(rows));
  if (labels.dtype != ORR_I32 && labels.dtype != ORR_I64)
    throw std::invalid_argument(std::string("labels must be i32 or i64, not ") +
                                dtype_name(labels.dtype) +
                                "; write 1 for 1.0, or orrery.tensor(labels, \"i32\")");
  Type row{loss_dtype(x.dtype), rows};
  if (w != row)
    throw std::invalid_argument("weights are " + to_string(w) + ", wanted " + to_string(row));
  if (args.in.size() == 4) return {row, row, x};
  return {row, row};
}

std::vector<Type> infer_grad(const OpArgs& args) { return {args.in[1]}; }

Sharding sharding(const OpArgs& args, const std::vector<Type>& out) {
  size_t logits = args.kind == "cross_entropy" ? 0 : 1;
  return row_sharding(args, out, args.in[logits].dims.size(), 1);
}

// exp(x - lse), in the dtype of lse.
ValueId probabilities(Program& p, ValueId x, ValueId lse) {
  const ValueId wide = p.cast(x, p.type(lse).dtype);
  return p.pointwise(ORR_FN_EXP, {p.pointwise(ORR_FN_SUB, {wide, as_column(p, lse)})});
}

void gradient(Gradient& g, const Op& op) {
  Program& p = g.p;
  ValueId x = op.in[0], dy = g.dy(), dlse = g.dy(1), w = op.in[2];
  if (dlse != kNone && g.wanted(x)) {
    const ValueId y = probabilities(p, x, op.out[1]);
    g.add(x, p.cast(p.pointwise(ORR_FN_MUL, {y, as_column(p, dlse)}), p.type(x).dtype));
  }
  if (dy == kNone) return;
  if (g.wanted(x)) g.add(x, p.add1("cross_entropy_grad", {dy, x, op.in[1], w, op.out[1]}));
  if (!g.wanted(w)) return;
  // The loss is linear in its weight; where that is 0 the label may be none, so its slope stays 0.
  ValueId counts = p.cast(p.pointwise(ORR_FN_NE, {w, Operand::number(0)}), p.type(w).dtype);
  ValueId loss = p.add("cross_entropy", {x, op.in[1], counts})[0];
  g.add(w, p.pointwise(ORR_FN_MUL, {dy, loss}));
}

// dloss * w * (exp(x - lse) - [class = label]), of classes that count from 0 in x.
ValueId slope(Program& p, ValueId dloss, ValueId w, ValueId x, ValueId lse, ValueId labels) {
  const ValueId each = p.pointwise(ORR_FN_MUL, {dloss, w});
  const ValueId y = probabilities(p, x, lse);
  const ValueId classes = build::iota(p, p.type(x).dims.back(), p.type(labels).dtype);
  const ValueId hit = p.pointwise(ORR_FN_EQ, {as_column(p, labels), classes});
  const ValueId rest = p.pointwise(ORR_FN_SUB, {y, p.cast(hit, p.type(y).dtype)});
  return p.cast(p.pointwise(ORR_FN_MUL, {as_column(p, each), rest}), p.type(x).dtype);
}

std::vector<ValueId> grad_parts(Program& p, const Op& op) {
  return {slope(p, op.in[0], op.in[3], op.in[1], op.in[4], op.in[2])};
}

void grad_gradient(Gradient& g, const Op& op) { gradient_by_parts(g, op, grad_parts); }

KernelForm form(const Op& op, const std::vector<Strided>& in, const std::vector<Strided>& out) {
  if (op.kind == "cross_entropy_grad") return contiguous_form(in, out, "fRfffR");
  return contiguous_form(in, out, in.size() == 4 ? "RfffffR" : "Rffff");
}

Cost cost(const OpArgs& args, const std::vector<Type>& out) {
  Cost c = touch_cost(args, out);
  size_t logits = args.kind == "cross_entropy" ? 0 : 1;
  c.flops = 4.0 * static_cast<double>(args.in[logits].elements());
  return c;
}

// -- on cut classes -------------------------------------------------------------------------------

// Whether each rank has logits of some classes.
bool classes_sharded(const OnParts& s, ValueId logits) {
  return !s.over_batch &&
         s.at(logits).is_plain(static_cast<int>(s.from.type(logits).dims.size()) - 1);
}

// What each chunk of the classes gives for every row: its lse, and the label's logit where it has
// the label, else 0.
struct OfChunks {
  std::vector<ValueId> lse, logit;
};
OfChunks of_chunks(OnParts& s, const Op& op, ValueId labels, ValueId counts) {
  Program& p = s.p;
  const int64_t extent = s.from.type(op.in[0]).dims.back();
  OfChunks found;
  for (int i = 0; i < s.n_chunks; ++i) {
    const Member part = s.chunk(i);
    const ValueId x = s.read_chunk(op.in[0], part);
    const PartIndex mine = index_in_part(p, labels, extent, part, part.begin(extent));
    const ValueId hit = p.pointwise(ORR_FN_AND, {counts, mine.inside});
    const ValueId weight = p.cast(hit, s.from.type(op.in[2]).dtype);
    const std::vector<ValueId> local = p.add("cross_entropy", {x, mine.index, weight});
    found.logit.push_back(masked(p, hit, p.pointwise(ORR_FN_SUB, {local[1], local[0]})));
    found.lse.push_back(local[1]);
  }
  return found;
}

// Three reductions of one number a row make the chunks' results the whole's.
bool on_classes(OnParts& s, const Op& op) {
  if (!classes_sharded(s, op.in[0])) return false;
  Program& p = s.p;
  const ValueId labels = s.read(op.in[1], Placement{}), w = s.read(op.in[2], Placement{});
  const ValueId counts = p.pointwise(ORR_FN_NE, {w, Operand::number(0)});
  OfChunks chunks = of_chunks(s, op, labels, counts);
  const ValueId top = s.reduced(build::tree(p, chunks.lse, ORR_FN_MAX), "max");
  for (ValueId& lse : chunks.lse)
    lse = p.pointwise(ORR_FN_EXP, {p.pointwise(ORR_FN_SUB, {lse, top})});
  const ValueId sum = s.reduced(build::tree(p, chunks.lse));
  const ValueId logit = s.reduced(build::tree(p, chunks.logit));
  const ValueId lse = p.pointwise(ORR_FN_ADD, {top, p.pointwise(ORR_FN_LOG, {sum})});
  const ValueId miss = p.pointwise(ORR_FN_SUB, {lse, logit});
  s.become(op.out[0], masked(p, counts, p.pointwise(ORR_FN_MUL, {w, miss})), Placement{});
  s.become(op.out[1], lse, Placement{});
  return true;
}

bool grad_on_classes(OnParts& s, const Op& op) {
  if (!classes_sharded(s, op.in[1])) return false;
  const Placement& how = s.at(op.in[1]);
  const int64_t extent = s.from.type(op.in[1]).dims.back();
  const ValueId labels = s.read(op.in[2], Placement{});
  const PartIndex mine = index_in_part(s.p, labels, extent, s.me, s.me.begin(extent));
  const ValueId dloss = s.read(op.in[0], Placement{}), w = s.read(op.in[3], Placement{});
  const ValueId lse = s.read(op.in[4], Placement{}), x = s.read(op.in[1], how);
  s.become(op.out[0], slope(s.p, dloss, w, x, lse, mine.index), how);
  return true;
}

constexpr PartsRule kParts{.run = on_classes}, kGradParts{.run = grad_on_classes};

}  // namespace

extern const OpDef cross_entropy_op{"cross_entropy", infer, sharding, gradient, cost, form,
                                    &kParts};
extern const OpDef cross_entropy_grad_op{
    "cross_entropy_grad", infer_grad, sharding, grad_gradient, cost, form, &kGradParts};

}  // namespace orrery
