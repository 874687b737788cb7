// SPDX-License-Identifier: Apache-2.0
//
// Sums 16-bit tensors as they are stored. A mean of such a tensor is a sum in f32 of its cast; the
// same sum, to the bit, is that of the tensor itself with a result in f32 (ops.h, ANOTHER DTYPE),
// which reads half as much, and the cast is not written.
#include <algorithm>

#include "lower/kernels/joined_ops.h"
#include "lower/lower.h"

namespace orrery {
namespace {

// Whether the op does nothing but store a 16-bit tensor as f32.
bool is_widening(const Program& p, const Op& op) {
  if (op.kind != "pointwise" || op.in.size() != 1 || op.out.size() != 1) return false;
  const Type &x = p.type(op.in[0]), &y = p.type(op.out[0]);
  return op.expr.instrs.size() == 2 && op.expr.instrs[1].fn == ORR_FN_CAST && y.dtype == ORR_F32 &&
         is_real(x.dtype) && orr_dtype_bytes(x.dtype) == 2 && x.dims == y.dims;
}

bool is_sum(const Op& op) {
  return op.kind == "reduce" && attr_text(op.attrs, "fn", "") == "sum" && !op.attrs.has("dtype");
}

}  // namespace

void sum_as_stored(LocalProgram& local) {
  Program& p = local.program;
  const std::vector<char> pinned = read_from_outside(local);
  std::vector<std::vector<size_t>> readers(p.values().size());
  for (size_t i = 0; i < p.ops().size(); ++i)
    for (ValueId v : p.ops()[i].in) readers[static_cast<size_t>(v)].push_back(i);
  std::vector<char> gone(p.ops().size());
  for (size_t i = 0; i < p.ops().size(); ++i) {
    const Op& cast = p.ops()[i];
    if (!is_widening(p, cast) || pinned[static_cast<size_t>(cast.out[0])]) continue;
    const std::vector<size_t>& sums = readers[static_cast<size_t>(cast.out[0])];
    if (sums.empty() ||
        !std::all_of(sums.begin(), sums.end(), [&](size_t k) { return is_sum(p.ops()[k]); }))
      continue;
    for (size_t k : sums) {
      Op& sum = p.mutable_ops()[k];
      sum.in[0] = cast.in[0];
      sum.attrs.set("dtype", int64_t{ORR_F32});
    }
    gone[i] = true;
  }
  remove_ops(p, gone);
}

}  // namespace orrery
