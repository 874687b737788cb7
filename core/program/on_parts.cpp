// SPDX-License-Identifier: Apache-2.0
#include "program/on_parts.h"

#include <algorithm>

#include "program/build.h"

namespace orrery {

Member OnParts::chunk(int i) const { return {me.rank * n_chunks + i, n_parts, me.axis, me.origin}; }

int OnParts::owner_of(size_t i, size_t n) const {
  Member part{0, n_parts, {}, {}};
  while (static_cast<int64_t>(i) >= part.end(static_cast<int64_t>(n))) ++part.rank;
  return part.rank / n_chunks;
}

std::vector<Way> linear_options(const OnParts&, const Op& op, const std::vector<Placement>& in) {
  const bool sums = std::all_of(in.begin(), in.end(),
                                [](const Placement& c) { return c.kind == Placement::partial; });
  if (!sums || in.empty() || attr_text(op.attrs, "fn", "sum") != "sum") return {};
  return {Way{in, std::vector<Placement>(op.out.size(), Placement::summand())}};
}

constexpr PartsRule linear_parts{.options = linear_options};

void fit_dims(Op& copy, const Program& p, const Way&, const Member&) {
  if (copy.attrs.has("dims")) copy.attrs.set("dims", p.type(copy.out[0]).dims);
}

PartIndex index_in_part(Program& p, ValueId index, int64_t extent, const Member& owner,
                        int64_t first) {
  auto number = [](int64_t x) { return Operand::number(static_cast<double>(x)); };
  ValueId shifted = p.pointwise(ORR_FN_SUB, {index, number(first)});
  ValueId inside = kNone;
  if (owner.rank > 0)
    inside = p.pointwise(ORR_FN_GE, {shifted, number(owner.begin(extent) - first)});
  if (owner.rank + 1 < owner.ranks) {
    const ValueId below = p.pointwise(ORR_FN_LT, {shifted, number(owner.end(extent) - first)});
    inside = inside == kNone ? below : p.pointwise(ORR_FN_AND, {inside, below});
  }
  // An index that the whole does not have keeps its number, which the kernel's error then says. All
  // ranks do so: one plan serves those whose programs differ in numbers alone (rank_kinds.h).
  shifted =
      p.pointwise(ORR_FN_SELECT, {p.pointwise(ORR_FN_LT, {index, number(extent)}), shifted, index});
  return {shifted, inside};
}

ValueId masked(Program& p, ValueId mask, ValueId x) {
  return mask == kNone ? x : p.pointwise(ORR_FN_SELECT, {mask, x, Operand::number(0)});
}

ValueId as_column(Program& p, ValueId rows) {
  if (rows == kNone) return kNone;
  Dims dims = p.type(rows).dims;
  dims.push_back(1);
  return build::reshape(p, rows, dims);
}

}  // namespace orrery
