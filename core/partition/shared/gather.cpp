// SPDX-License-Identifier: Apache-2.0
#include "partition/shared/gather.h"

#include <numeric>

#include "program/build.h"
#include "program/rewrite.h"

namespace orrery {

namespace {

// The n elements of v as one row, which is no value of samples even if a rank has one of them.
ValueId in_a_row(Program& p, ValueId v, int64_t n) {
  if (p.type(v).dims.size() == 1) return v;
  return append_op(p, "reshape", {{"dims", Dims{n}}}, {v}, {p.type(v).dtype, {n}});
}

}  // namespace

std::vector<ValueId> gather_together(Program& p, const std::vector<Pieces>& tensors, int32_t dtype,
                                     const Among& among, const CommOp& how) {
  Dims counts(tensors[0].cuts.size() - 1, 0), sizes;
  std::vector<ValueId> own;
  for (const Pieces& t : tensors) {
    for (size_t r = 0; r < counts.size(); ++r) counts[r] += t.cuts[r + 1] - t.cuts[r];
    sizes.push_back(t.cuts.back() - t.cuts.front());
    for (ValueId v : t.own)
      if (const int64_t n = v == kNone ? 0 : p.type(v).elements(); n > 0)
        own.push_back(in_a_row(p, v, n));
  }
  const Attrs attrs = {{"axis", among.axis},
                       {"origin", among.origin},
                       {"counts", counts},
                       {"me", int64_t{among.me}}};
  if (!own.empty()) own = {build::concat(p, own, 0)};
  const int64_t n = std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
  Op op;
  op.kind = "all_gather", op.attrs = attrs, op.in = own;
  op.set_exchange(how);
  const ValueId all = append_op(p, std::move(op), {dtype, {n}});
  return sizes.size() == 1 ? std::vector{all} : build::split(p, all, 0, sizes);
}

}  // namespace orrery
