// SPDX-License-Identifier: Apache-2.0
//
// Sums over a dim that is cut. The dim consists of chunks, equally many on every rank, and a sum
// has one summand for each chunk. Linear ops are applied to each summand. Where an op reads the sum
// itself, a rank adds its summands in the binary tree, and an exchange adds the ranks' nodes. If
// the number of chunks is fixed, the bits depend on that number only, not on the ranks; else a rank
// has one chunk.
#include <orrery/ops.h>

#include "partition/cut/pass.h"
#include "partition/shared/blocks.h"
#include "program/build.h"

namespace orrery {

void CutPass::become_sum(ValueId v, std::vector<ValueId> summands) {
  for (ValueId x : summands) note(x, Placement::summand());
  summands_[v] = std::move(summands), at_[static_cast<size_t>(v)] = Placement::summand();
}

void CutPass::become_same(ValueId out, ValueId v) {
  if (cut(v).kind == Placement::partial) return become_sum(out, summands(v));
  become(out, here_[static_cast<size_t>(v)], cut(v));
}

// The summands of v. A value that is the same on all ranks is the first summand; the others are 0.
std::vector<ValueId> CutPass::summands(ValueId v) {
  if (cut(v).kind == Placement::partial) return summands_.at(v);
  std::vector<ValueId> found;
  for (int i = 0; i < n_chunks; ++i)
    found.push_back(
        p.pointwise(ORR_FN_MUL, {known(v), Operand::number(chunk(i).rank == 0 ? 1 : 0)}));
  return found;
}

// Reads v, moved to `to`, for an op that works on one part: the chunk's share if v lies in parts.
ValueId CutPass::read_part(ValueId v, const Placement& to, const Member& part) {
  ValueId x = read(v, to);
  if (to.kind != Placement::split || part.ranks == me.ranks) return x;
  const size_t first = p.ops().size();
  x = share(p, x, to, me, part);
  if (p.phase() == Phase::update) p.mutable_ops()[first].reads_whole = true;
  return x;
}

// Carries out a reduction of a whole tensor that is cut along its first dim, where the parts are
// whole blocks of the sum: each rank reduces its blocks, and all ranks combine the results. So the
// bits are those of one rank. Returns false, having done nothing, if the op is no such reduction.
bool CutPass::by_blocks(const Op& op) {
  if (!over_batch || !is_whole_reduce(from, op)) return false;
  const Placement& rows = cut(op.in[0]);
  const Type& whole = from.type(op.in[0]);
  if (rows.kind != Placement::split || rows.dim != 0 || rows.segments.size() != 1 ||
      whole.elements() % (me.ranks * ORR_SUM_BLOCK))
    return false;
  const ValueId x = build::reshape(p, known(op.in[0]), {-1});
  const ValueId mine = reduce_blocks(p, op, x, true, block_dtype(p, op)).front();
  const Dims blocks = {whole.elements() / ORR_SUM_BLOCK};
  const ValueId all = move(p, mine, blocks, Placement::along(0, blocks), Placement{}, me);
  become(op.out[0], combine_blocks(p, op, all), Placement{});
  return true;
}

}  // namespace orrery
