// SPDX-License-Identifier: Apache-2.0
#include "partition/shared/gather.h"

#include <numeric>

#include "program/build.h"
#include "program/rewrite.h"

namespace orrery {

namespace {

// The n elements of v in one dim. This dim is no batch dim, whatever v was.
ValueId in_a_row(Program& p, ValueId v, int64_t n) {
  if (p.type(v).dims.size() == 1) return v;
  return append_op(p, "reshape", {{"dims", Dims{n}}}, {v}, {p.type(v).dtype, {n}});
}

// Whether the gathered pieces, rank after rank, are the tensors one after another. They are if no
// rank has a piece of a tensor of which a later rank has a piece of the tensor before.
bool is_one_list(const std::vector<ShardedTensor>& tensors) {
  size_t last = 0;  // the last rank with a piece of the tensors so far
  for (const ShardedTensor& t : tensors)
    for (size_t r = 0; r + 1 < t.cuts.size(); ++r) {
      if (t.cuts[r + 1] == t.cuts[r]) continue;
      if (r < last) return false;
      last = r;
    }
  return true;
}

// The tensors from `all`, which has the pieces of the first rank, then those of the second, ...
std::vector<ValueId> put_together(Program& p, const std::vector<ShardedTensor>& tensors,
                                  ValueId all) {
  Dims sizes;
  std::vector<std::vector<size_t>> places(tensors.size());  // by tensor: its pieces among `sizes`
  for (size_t r = 0; r + 1 < tensors[0].cuts.size(); ++r)
    for (size_t t = 0; t < tensors.size(); ++t)
      if (const int64_t n = tensors[t].cuts[r + 1] - tensors[t].cuts[r]; n > 0) {
        places[t].push_back(sizes.size());
        sizes.push_back(n);
      }
  const std::vector<ValueId> pieces = build::split(p, all, 0, sizes);
  std::vector<ValueId> wholes;
  for (const std::vector<size_t>& its : places) {
    std::vector<ValueId> parts;
    for (size_t place : its) parts.push_back(pieces[place]);
    wholes.push_back(build::concat(p, parts, 0));
  }
  return wholes;
}

}  // namespace

std::vector<ValueId> gather_together(Program& p, const std::vector<ShardedTensor>& tensors,
                                     int32_t dtype, const GatherAxis& over, const CommOp& how) {
  Dims counts(tensors[0].cuts.size() - 1, 0), sizes;
  std::vector<ValueId> own;
  for (const ShardedTensor& t : tensors) {
    for (size_t r = 0; r < counts.size(); ++r) counts[r] += t.cuts[r + 1] - t.cuts[r];
    sizes.push_back(t.cuts.back() - t.cuts.front());
    for (ValueId v : t.own)
      if (const int64_t n = v == kNone ? 0 : p.type(v).elements(); n > 0)
        own.push_back(in_a_row(p, v, n));
  }
  const Attrs attrs = {
      {"axis", over.axis}, {"origin", over.origin}, {"counts", counts}, {"me", int64_t{over.me}}};
  if (!own.empty()) own = {build::concat(p, own, 0)};
  const int64_t n = std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
  Op op;
  op.kind = "all_gather", op.attrs = attrs, op.in = own;
  op.set_exchange(how);
  const ValueId all = append_op(p, std::move(op), {dtype, {n}});
  if (sizes.size() == 1) return {all};
  return is_one_list(tensors) ? build::split(p, all, 0, sizes) : put_together(p, tensors, all);
}

}  // namespace orrery
