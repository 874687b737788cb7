// SPDX-License-Identifier: Apache-2.0
//
// Sums over a dim that is cut. The dim consists of chunks, as many on every rank; a sum is one
// summand for each of them, which linear ops are applied to one by one. Where the sum itself is
// read, a rank adds its chunks in the binary tree and the exchange goes on with the ranks' nodes.
// With a fixed number of chunks the bits depend on it alone, not on the ranks; else a rank is one
// chunk.
#include <orrery/ops.h>

#include "lower/blocks.h"
#include "lower/chains.h"
#include "lower/cut_pass.h"
#include "program/build.h"

namespace orrery {

Member CutPass::chunk(int i) const {
  return {me_.rank * chunks_ + i, parts_, me_.axis, me_.origin};
}

void CutPass::become_sum(ValueId v, std::vector<ValueId> summands) {
  summands_[v] = std::move(summands), at_[static_cast<size_t>(v)] = Cut::summand();
}

// A value that is the same everywhere counts as the first summand, and zeros.
std::vector<ValueId> CutPass::summands(ValueId v) {
  if (cut(v).kind == Cut::sum) return summands_.at(v);
  std::vector<ValueId> found;
  for (int i = 0; i < chunks_; ++i)
    found.push_back(
        to_.pointwise(ORR_FN_MUL, {known(v), Operand::number(chunk(i).rank == 0 ? 1 : 0)}));
  return found;
}

// What an op on one part reads of what lies as `to`.
ValueId CutPass::read_part(ValueId v, const Cut& to, const Member& part) {
  ValueId x = read(v, to);
  if (to.kind != Cut::parts || part.ranks == me_.ranks) return x;
  const size_t first = to_.ops().size();
  x = share(to_, x, to, me_, part);
  if (to_.phase() == Phase::update) to_.mutable_ops()[first].attrs["whole"] = int64_t{1};
  return x;
}

// A reduction of all elements of what is cut along its first dim has the bits of one rank where
// parts are whole blocks of the sum: each rank reduces its blocks, and all combine them.
bool CutPass::by_blocks(const Op& op) {
  if (!deals_ || !is_whole_reduce(from_, op)) return false;
  const Cut& rows = cut(op.in[0]);
  const Type& whole = from_.type(op.in[0]);
  if (rows.kind != Cut::parts || rows.dim != 0 || rows.segments.size() != 1 ||
      whole.elements() % (me_.ranks * ORR_SUM_BLOCK))
    return false;
  const ValueId x = build::reshape(to_, known(op.in[0]), {-1});
  const ValueId mine = reduce_blocks(to_, op, x, true, block_dtype(to_, op)).front();
  const Dims blocks = {whole.elements() / ORR_SUM_BLOCK};
  const ValueId all = move(to_, mine, blocks, Cut::of(0, blocks), Cut{}, me_);
  become(op.out[0], combine_blocks(to_, op, all), Cut{});
  return true;
}

}  // namespace orrery
