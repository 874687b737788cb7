// SPDX-License-Identifier: Apache-2.0
#include "lower/blocks.h"

#include <orrery/ops.h>

#include "program/build.h"

namespace orrery {

bool adds_up(const Op& reduce) { return attr_text(reduce.attrs, "fn", "").starts_with("sum"); }

static ValueId reduce_from(Program& p, const Op& op, ValueId x, int64_t begin, int32_t dtype) {
  Op r;
  r.kind = "reduce", r.phase = Phase::update, r.site = op.site;
  Dims dims = p.type(x).dims;
  r.attrs = {
      {"fn", op.attrs.at("fn")}, {"begin", begin}, {"end", static_cast<int64_t>(dims.size())}};
  dims.resize(static_cast<size_t>(begin));
  r.in = {x}, r.out = {p.new_value({dtype, dims}, Role::activation)};
  ValueId out = r.out[0];
  p.append(std::move(r));
  return out;
}

std::vector<ValueId> reduce_blocks(Program& p, const Op& op, ValueId x, bool each, int32_t dtype) {
  if (!each) return {build::reshape(p, reduce_from(p, op, x, 0, dtype), {1})};
  const int64_t n = p.type(x).elements(), body = n / ORR_SUM_BLOCK * ORR_SUM_BLOCK;
  std::vector<ValueId> results;
  if (body > 0) {
    const ValueId rows =
        build::reshape(p, build::slice(p, x, 0, 0, body), {body / ORR_SUM_BLOCK, ORR_SUM_BLOCK});
    results.push_back(reduce_from(p, op, rows, 1, dtype));
  }
  if (body < n) {
    const ValueId rest = reduce_from(p, op, build::slice(p, x, 0, body, n), 0, dtype);
    results.push_back(build::reshape(p, rest, {1}));
  }
  return results;
}

void combine_blocks(Program& p, const Op& op, ValueId blocks) {
  int64_t n = p.type(blocks).elements();
  Op last;
  last.phase = Phase::update, last.site = op.site, last.out = op.out;
  if (n == 1) {
    last.kind = "reshape", last.in = {blocks}, last.attrs["dims"] = Dims{};
  } else {
    last.kind = "reduce", last.in = {blocks};
    last.attrs = {{"fn", adds_up(op) ? Attr("sum") : op.attrs.at("fn")},
                  {"begin", int64_t{0}},
                  {"end", int64_t{1}}};
    if (adds_up(op))
      last.attrs["leaf_lo"] = int64_t{0}, last.attrs["leaf_n"] = last.attrs["leaf_total"] = n;
  }
  int32_t dtype = p.type(blocks).dtype, wanted = p.type(op.out[0]).dtype;
  if (dtype != wanted) {  // rounded once, as in one process
    last.out = {p.new_value({dtype, {}}, Role::activation)};
    ValueId sum = last.out[0];
    p.append(std::move(last));
    last = Op{};
    last.kind = "pointwise", last.phase = Phase::update, last.site = op.site, last.in = {sum},
    last.out = op.out;
    last.expr.outputs = {
        last.expr.push(ORR_FN_CAST, wanted, last.expr.push(ORR_FN_INPUT, dtype, 0))};
  }
  p.append(std::move(last));
}

}  // namespace orrery
