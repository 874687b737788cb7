// SPDX-License-Identifier: Apache-2.0
//
// pointwise_next: its pointwise op, and then the op that reads the result.
#include <algorithm>
#include <vector>

#include "op.h"

namespace reference {
namespace {

const Family& family_of(const orr_op& op) {
  const std::string_view next = orr::attr_text(op, "next", "");
  for (const Family* f : {&reduce_family, &layernorm_family, &rmsnorm_family})
    if (next == f->kind) return *f;
  throw Unsupported("next must be \"reduce\", \"layernorm\" or \"rmsnorm\"");
}

// How many inputs the expression has.
int inputs_of(const orr_op& op) {
  int n = 0;
  for (int k = 0; op.expr && k < op.expr->n_instrs; ++k)
    if (op.expr->instrs[k].fn == ORR_FN_INPUT) n = std::max(n, op.expr->instrs[k].a + 1);
  require(op.expr && n <= op.n_in && op.expr->n_outputs >= 1 && op.expr->n_outputs < op.n_out,
          "not a pointwise op and one that reads it");
  return n;
}

// Rows as the second op has them: [R,C], or of a reduce [O,R/O,C], in O `parts` that are summed
// apart.
orr_tensor rows_of(const orr_tensor& y, bool reduce, int64_t parts) {
  require(y.rank >= 1, "rows are needed");
  const int64_t columns = y.dims[y.rank - 1];
  int64_t rows = 1;
  for (int d = 0; d + 1 < y.rank; ++d) rows *= y.dims[d];
  require(parts > 0 && rows % parts == 0, "no equal parts of rows");
  rows /= parts;
  orr_tensor t{};
  t.dtype = y.dtype, t.rank = reduce ? 3 : 2;
  t.dims[0] = parts, t.strides[0] = rows * columns;
  t.dims[t.rank - 2] = rows, t.strides[t.rank - 2] = columns;
  t.dims[t.rank - 1] = columns, t.strides[t.rank - 1] = 1;
  return t;
}

// The two ops. Stays where it is.
struct Parts {
  explicit Parts(const orr_op& op)
      : second(family_of(op)),
        n_in(inputs_of(op)),
        n_out(op.expr->n_outputs),
        in(op.in + n_in, op.in + op.n_in),
        out(op.out + n_out, op.out + op.n_out),
        pointwise(op),
        next(op) {
    const bool reduce = &second == &reduce_family;
    const bool apart = reduce && out[0].rank == 2 && !orr::attr(op, "leaf_n");
    in.insert(in.begin(), rows_of(op.out[0], reduce, apart ? out[0].dims[0] : 1));
    if (reduce && out[0].rank == 1)
      out[0].rank = 2, out[0].dims[1] = out[0].dims[0], out[0].dims[0] = 1;
    pointwise.n_in = n_in, pointwise.n_out = n_out;
    next.kind = second.kind, next.expr = nullptr;
    next.n_in = int(in.size()), next.in = in.data();
    next.n_out = int(out.size()), next.out = out.data();
  }
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;

  const Family& second;
  int n_in, n_out;                  // of the pointwise op
  std::vector<orr_tensor> in, out;  // of the other
  orr_op pointwise, next;
};

void check(const orr_op& op) {
  const Parts parts(op);
  pointwise_family.check(parts.pointwise);
  parts.second.check(parts.next);
}

uint64_t workspace(const orr_op& op) {
  const Parts parts(op);
  const uint64_t own = parts.second.workspace ? parts.second.workspace(parts.next) : 0;
  return std::max(pointwise_family.workspace(parts.pointwise), own);
}

void run(const Call& call) {
  const Parts parts(call.op);
  pointwise_family.run({parts.pointwise, call.in, call.out, call.workspace});
  std::vector<orr_buffer> in(call.in + parts.n_in, call.in + call.op.n_in);
  in.insert(in.begin(), call.out[0]);
  parts.second.run({parts.next, in.data(), call.out + parts.n_out, call.workspace});
}

}  // namespace

const Family pointwise_next_family = {
    "pointwise_next", "reference.pointwise.1+next.1", check, run, workspace, ~0u, 0, nullptr};

}  // namespace reference
