// SPDX-License-Identifier: Apache-2.0
//
// Matrix products whose leading dims are broadcast.
#include <algorithm>

#include "program/build.h"

namespace orrery::build {
namespace {

// The dims before the last two, with dims of 1 in front so that they are `rank` many.
Dims leading(const Program& p, ValueId x, size_t rank) {
  const Dims& dims = p.type(x).dims;
  Dims lead(rank + 2 - dims.size(), 1);
  lead.insert(lead.end(), dims.begin(), dims.end() - 2);
  return lead;
}

Dims joined(Dims lead, int64_t m, int64_t n) {
  lead.insert(lead.end(), {m, n});
  return lead;
}

// a repeated to the leading dims; also along the batch dim if only `like` has one.
ValueId repeat_leading(Program& p, ValueId a, const Dims& lead, ValueId like) {
  if (p.value(like).batch() == Batch::sharded) a = p.completed(a);
  const Dims dims = p.type(a).dims;
  if (leading(p, a, lead.size()) == lead)
    return reshape(p, a, joined(lead, dims.end()[-2], dims.back()));
  ValueId y = broadcast(p, a, joined(lead, dims.end()[-2], dims.back()));
  const Value& b = p.value(like);
  if (b.batch() != Batch::sharded || p.value(a).batch() == Batch::sharded) return y;
  const auto added = static_cast<int32_t>(lead.size() + 2 - b.type.dims.size());
  p.mutable_value(y).set_batch(Batch::sharded, b.batch_dim() + added);
  return y;
}

// The product where b has fewer matrices than a: all rows of a that are multiplied by the same
// matrix are merged into one matrix. The batch dim comes first among the merged dims, so that sums
// over it keep their order.
ValueId matmul_shared(Program& p, ValueId a, ValueId b, const Dims& lead, bool tb) {
  const Dims own = leading(p, b, lead.size()), x = p.type(a).dims, w = p.type(b).dims;
  Dims order, kept, repeats;
  for (size_t i = 0; i < lead.size(); ++i)
    if (own[i] == lead[i]) order.push_back(static_cast<int64_t>(i)), kept.push_back(lead[i]);
  const auto first_repeat = static_cast<long>(order.size());
  for (size_t i = 0; i < lead.size(); ++i)
    if (own[i] != lead[i])
      order.insert(p.value(a).batch_dim() == static_cast<int32_t>(i) ? order.begin() + first_repeat
                                                                     : order.end(),
                   static_cast<int64_t>(i));
  for (size_t i = kept.size(); i < order.size(); ++i)
    repeats.push_back(lead[static_cast<size_t>(order[i])]);
  order.insert(order.end(),
               {static_cast<int64_t>(lead.size()), static_cast<int64_t>(lead.size()) + 1});
  ValueId rows = reshape(p, transpose(p, a, order), joined(kept, -1, x.back()));
  ValueId y = matmul(p, rows, reshape(p, b, joined(kept, w.end()[-2], w.back())), false, tb);
  Dims unmerged = kept, back(order.size());
  unmerged.insert(unmerged.end(), repeats.begin(), repeats.end());
  for (size_t i = 0; i < order.size(); ++i)
    back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  return transpose(p, reshape(p, y, joined(unmerged, x.end()[-2], p.type(y).dims.back())), back);
}

}  // namespace

ValueId matmul(Program& p, ValueId a, ValueId b, bool ta, bool tb) {
  const size_t rank_a = p.type(a).dims.size(), rank_b = p.type(b).dims.size();
  if (rank_a >= 2 && rank_b > 2) {
    const size_t rank = std::max(rank_a, rank_b) - 2;
    const Dims lead_a = leading(p, a, rank), lead_b = leading(p, b, rank);
    Dims lead = lead_a;
    bool fit = true;
    for (size_t i = 0; i < rank; ++i) {
      fit = fit && (lead_a[i] == lead_b[i] || lead_a[i] == 1 || lead_b[i] == 1);
      lead[i] = std::max(lead_a[i], lead_b[i]);
    }
    if (fit && (lead_a != lead_b || rank_a != rank_b)) {
      if (ta) a = swap_last(p, a);
      a = repeat_leading(p, a, lead, b);
      if (lead_b != lead) return matmul_shared(p, a, b, lead, tb);
      return matmul(p, a, repeat_leading(p, b, lead, b), false, tb);
    }
  }
  Attrs attrs;
  if (ta) attrs.set("ta", int64_t{1});
  if (tb) attrs.set("tb", int64_t{1});
  return p.add1("matmul", {a, b}, attrs);
}

}  // namespace orrery::build
