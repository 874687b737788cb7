// SPDX-License-Identifier: Apache-2.0
#include "partition/samples/by_microbatch.h"

#include <algorithm>

#include "partition/samples/batch_rows.h"
#include "program/build.h"

namespace orrery {
namespace {

// By microbatch: what an op reads of v.
std::vector<ValueId> samples_of(Program& p, ValueId v, int microbatches) {
  const Value& value = p.value(v);
  if (value.batch() != Batch::sharded) return std::vector(static_cast<size_t>(microbatches), v);
  return split_samples(p, v, value.batch_dim(), microbatches);
}

// The sums of the microbatches as rows [microbatches, ...].
ValueId as_rows(Program& p, const std::vector<ValueId>& sums) {
  std::vector<ValueId> rows;
  for (ValueId sum : sums) {
    Dims dims = p.type(sum).dims;
    dims.insert(dims.begin(), 1);
    rows.push_back(build::reshape(p, sum, dims));
  }
  return of_samples(p, build::concat(p, rows, 0));
}

}  // namespace

void set_summands(Attrs& attrs, const Summands& summands, bool idle) {
  attrs.set("leaf_lo", summands.lo);
  attrs.set("leaf_n", idle ? int64_t{1} : summands.n);
  attrs.set("leaf_total", std::max<int64_t>(summands.total, 1));
}

void append_by_microbatch(Program& p, const Op& op, const Summands& summands) {
  if (summands.n <= 1) {
    p.append(op);
    return;
  }
  const auto n = static_cast<int>(summands.n);
  std::vector<std::vector<ValueId>> given, made(op.out.size());
  for (ValueId v : op.in) given.push_back(samples_of(p, v, n));
  for (size_t i = 0; i < static_cast<size_t>(n); ++i) {
    Op one = op;
    for (size_t k = 0; k < one.in.size(); ++k) one.in[k] = given[k][i];
    for (size_t j = 0; j < one.out.size(); ++j) {
      one.out[j] = p.new_value(p.type(op.out[j]), Role::activation);
      made[j].push_back(one.out[j]);
    }
    p.append(std::move(one));
  }
  for (size_t j = 0; j < op.out.size(); ++j) {
    Op sum;
    sum.kind = "reduce", sum.in = {as_rows(p, made[j])}, sum.out = {op.out[j]};
    sum.attrs = {{"fn", "sum"}, {"begin", int64_t{0}}, {"end", int64_t{1}}};
    sum.phase = op.phase, sum.site = op.site;
    set_summands(sum.attrs, summands, false);
    p.append(std::move(sum));
  }
}

}  // namespace orrery
