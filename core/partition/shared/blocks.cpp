// SPDX-License-Identifier: Apache-2.0
#include "partition/shared/blocks.h"

#include <orrery/ops.h>

#include "program/build.h"

namespace orrery {
namespace {

bool adds_up(const Op& reduce) { return attr_text(reduce.attrs, "fn", "").starts_with("sum"); }

}  // namespace

bool is_whole_reduce(const Program& p, const Op& op) {
  return op.kind == "reduce" && op.phase == Phase::update && !p.type(op.in[0]).dims.empty() &&
         p.type(op.out[0]).dims.empty();
}

int32_t block_dtype(const Program& p, const Op& op) {
  const int32_t dtype = p.type(op.in[0]).dtype;
  const bool half = dtype == ORR_BF16 || dtype == ORR_F16;
  return half && adds_up(op) ? int32_t{ORR_F32} : p.type(op.out[0]).dtype;
}

std::vector<ValueId> reduce_blocks(Program& p, const Op& op, ValueId x, bool each, int32_t dtype) {
  const auto reduced = [&](ValueId part, int64_t begin) {
    return p.add1("reduce", {part},
                  {{"fn", attr_text(op.attrs, "fn", "")},
                   {"begin", begin},
                   {"end", static_cast<int64_t>(p.type(part).dims.size())},
                   {"dtype", int64_t{dtype}}});
  };
  if (!each) return {build::reshape(p, reduced(x, 0), {1})};
  const int64_t n = p.type(x).elements(), body = n / ORR_SUM_BLOCK * ORR_SUM_BLOCK;
  std::vector<ValueId> results;
  if (body > 0) {
    const ValueId blocks = build::slice(p, x, 0, 0, body);
    results.push_back(reduced(build::reshape(p, blocks, {body / ORR_SUM_BLOCK, ORR_SUM_BLOCK}), 1));
  }
  if (body < n)
    results.push_back(build::reshape(p, reduced(build::slice(p, x, 0, body, n), 0), {1}));
  return results;
}

ValueId combine_blocks(Program& p, const Op& op, ValueId blocks) {
  const int32_t dtype = p.type(op.out[0]).dtype;
  const int64_t n = p.type(blocks).elements();
  if (n == 1) return p.cast(build::reshape(p, blocks, {}), dtype);
  Attrs attrs = {{"fn", attr_text(op.attrs, "fn", "")}, {"begin", int64_t{0}}, {"end", int64_t{1}}};
  if (adds_up(op))
    attrs.set("fn", "sum"), attrs.set("leaf_lo", int64_t{0}), attrs.set("leaf_n", n),
        attrs.set("leaf_total", n);
  return p.cast(p.add1("reduce", {blocks}, std::move(attrs)), dtype);  // rounded once
}

}  // namespace orrery
