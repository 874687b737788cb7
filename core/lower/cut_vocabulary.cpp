// SPDX-License-Identifier: Apache-2.0
//
// Tables cut by rows and classes cut over ranks (Megatron's vocabulary parallelism): an index that
// another rank owns reads as nothing here, and the ranks' summands make the whole. Shares may be
// uneven, so a vocabulary need not divide.
#include "lower/cut_pass.h"
#include "program/build.h"

namespace orrery {
namespace {

// Rows [..] as [.., 1]; no mask is none.
ValueId column(Program& p, ValueId rows) {
  if (rows == kNone) return kNone;
  Dims dims = p.type(rows).dims;
  dims.push_back(1);
  return build::reshape(p, rows, dims);
}

// x where the mask holds; all of x if there is no mask.
ValueId otherwise_zero(Program& p, ValueId mask, ValueId x) {
  return mask == kNone ? x : p.pointwise(ORR_FN_SELECT, {mask, x, Operand::number(0)});
}

}  // namespace

// The outermost own what is outside of the table too, so that their kernels refuse it.
CutPass::Rows CutPass::rows_of(ValueId index, int64_t extent, const Member& owner, int64_t first) {
  const int64_t begin = owner.begin(extent) - first, end = owner.end(extent) - first;
  auto number = [](int64_t x) { return Operand::number(static_cast<double>(x)); };
  ValueId shifted = to_.pointwise(ORR_FN_SUB, {index, number(first)});
  ValueId inside = kNone;
  if (owner.rank > 0) inside = to_.pointwise(ORR_FN_GE, {shifted, number(begin)});
  if (owner.rank + 1 < owner.ranks) {
    ValueId below = to_.pointwise(ORR_FN_LT, {shifted, number(end)});
    inside = inside == kNone ? below : to_.pointwise(ORR_FN_AND, {inside, below});
  }
  return {shifted, inside};
}

bool CutPass::vocabulary(const Op& op) {
  auto by = [&](ValueId v, int dim) {
    const Cut& c = cut(v);
    return c.kind == Cut::parts && c.dim == dim && c.segments.size() == 1;
  };
  auto last = [&](ValueId v) { return static_cast<int>(from_.type(v).dims.size()) - 1; };
  if (parts_ == 1) return false;
  if (op.kind == "gather" && by(op.in[0], 0)) return gather_rows(op), true;
  if (op.kind == "cross_entropy" && by(op.in[0], last(op.in[0]))) return cross_entropy(op), true;
  if (op.kind == "cross_entropy_grad" && by(op.in[1], last(op.in[1])))
    return cross_entropy_grad(op), true;
  if (op.kind != "scatter_add" || op.twin == kNone) return false;
  const Op& twin = from_.ops()[static_cast<size_t>(op.twin)];
  if (twin.kind != "gather" || !by(twin.in[0], 0)) return false;
  return scatter_rows(op), true;
}

void CutPass::gather_rows(const Op& op) {
  const int64_t extent = from_.type(op.in[0]).dims[0];
  std::vector<ValueId> found;
  for (int i = 0; i < chunks_; ++i) {
    Rows ids = rows_of(read(op.in[1], Cut{}), extent, chunk(i), me_.begin(extent));
    ValueId rows =
        to_.add1("gather", {known(op.in[0]), otherwise_zero(to_, ids.inside, ids.index)});
    found.push_back(otherwise_zero(to_, column(to_, ids.inside), rows));
  }
  become_sum(op.out[0], std::move(found));
}

void CutPass::scatter_rows(const Op& op) {
  const int64_t extent = from_.type(op.out[0]).dims[0];
  Rows ids = rows_of(read(op.in[0], Cut{}), extent, me_, me_.begin(extent));
  Op copy = op;
  const ValueId rows = read(op.in[1], Cut{});
  copy.in = {otherwise_zero(to_, ids.inside, ids.index),
             otherwise_zero(to_, column(to_, ids.inside), rows)};
  const Cut table = Cut::of(0, {extent});
  to_.mutable_value(op.out[0]).type = held(from_.type(op.out[0]), table, me_);
  copy.attrs["rows"] = to_.type(op.out[0]).dims[0];
  become(op.out[0], op.out[0], table);
  to_.append(std::move(copy));
}

// The cross-entropy over the classes of a chunk alone gives its lse and, where it has the label,
// the label's logit: three reductions of one number a row make them the whole's.
void CutPass::cross_entropy(const Op& op) {
  Program& p = to_;
  ValueId labels = read(op.in[1], Cut{}), w = read(op.in[2], Cut{});
  const int32_t real = p.type(w).dtype;
  ValueId counts = p.pointwise(ORR_FN_NE, {w, Operand::number(0)});
  const int64_t extent = from_.type(op.in[0]).dims.back();
  std::vector<ValueId> tops, logits, parts;
  for (int i = 0; i < chunks_; ++i) {
    ValueId x = read_part(op.in[0], cut(op.in[0]), chunk(i));
    Rows mine = rows_of(labels, extent, chunk(i), chunk(i).begin(extent));
    ValueId hit = p.pointwise(ORR_FN_AND, {counts, mine.inside});
    auto local = p.add("cross_entropy", {x, mine.index, p.cast(hit, real)});
    logits.push_back(otherwise_zero(p, hit, p.pointwise(ORR_FN_SUB, {local[1], local[0]})));
    tops.push_back(local[1]);
  }
  ValueId top = all_reduce(p, build::tree(p, tops, ORR_FN_MAX), me_, "max");
  for (ValueId lse : tops)
    parts.push_back(p.pointwise(ORR_FN_EXP, {p.pointwise(ORR_FN_SUB, {lse, top})}));
  ValueId sum = all_reduce(p, build::tree(p, parts), me_),
          logit = all_reduce(p, build::tree(p, logits), me_);
  ValueId lse = p.pointwise(ORR_FN_ADD, {top, p.pointwise(ORR_FN_LOG, {sum})});
  ValueId miss = p.pointwise(ORR_FN_SUB, {lse, logit});
  become(op.out[0], otherwise_zero(p, counts, p.pointwise(ORR_FN_MUL, {w, miss})), Cut{});
  become(op.out[1], lse, Cut{});
}

void CutPass::cross_entropy_grad(const Op& op) {
  Program& p = to_;
  ValueId x = known(op.in[1]), labels = read(op.in[2], Cut{});
  const int64_t extent = from_.type(op.in[1]).dims.back();
  Rows mine = rows_of(labels, extent, me_, me_.begin(extent));
  ValueId scale = p.pointwise(ORR_FN_MUL, {read(op.in[0], Cut{}), read(op.in[3], Cut{})});
  ValueId lse = column(p, read(op.in[4], Cut{}));
  ValueId likely = p.pointwise(ORR_FN_EXP, {p.pointwise(ORR_FN_SUB, {x, lse})});
  ValueId classes = build::iota(p, p.type(x).dims.back(), p.type(labels).dtype);
  ValueId hit = p.pointwise(ORR_FN_EQ, {column(p, mine.index), classes});
  ValueId off = p.pointwise(ORR_FN_SUB, {likely, p.cast(hit, p.type(likely).dtype)});
  ValueId dx = p.cast(p.pointwise(ORR_FN_MUL, {column(p, scale), off}), p.type(x).dtype);
  become(op.out[0], dx, cut(op.in[1]));
}

}  // namespace orrery
