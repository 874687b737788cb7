// SPDX-License-Identifier: Apache-2.0
//
// pointwise_sum (orrery/sdk/joined.hpp): sums over what an expression makes, which is not stored.
#include "pointwise_sum.h"

#include <orrery/sdk/expression_checks.hpp>

namespace orr_cuda {

Summed::Summed(const orr_op& both) : op(both) {
  require(op.expr && op.expr->n_outputs == 1 && op.n_in > 0 && op.n_out == 1,
          "an expression with one output and one sum are needed");
  made = op.in[0];
  made.dtype = op.expr->instrs[op.expr->outputs[0]].dtype;
  int64_t stride = 1;
  for (int d = made.rank; d-- > 0; stride *= made.dims[d]) made.strides[d] = stride;
  op.kind = "pointwise", op.out = &made;
}

FoldPlan summed_plan(const orr_op& op) {
  const int64_t outer = attr_int(op, "outer", 0), columns = attr_int(op, "columns", 0);
  require(outer > 0 && columns > 1, "nothing is summed over rows");
  const int64_t rows = elements(op.in[0]) / (outer * columns);
  if (outer == 1) {
    require_leaves(op, rows);
    require_nodes(op, op.out[0], {columns}, "the sum");
  } else {
    require(!attr(op, "leaf_n"), "leaves need one sum for all samples");
    require_shape(op.out[0], {outer, columns}, "the sum");
  }
  return column_plan(op, outer, rows, columns, 1);
}

void require_summed(const orr_op& op) {
  const Summed first(op);
  check_expression(first.op);
  const Walk walk(first.op);
  require_real(first.made, "the expression");
  summed_plan(op);
  const int32_t dtype = first.made.dtype, sum = op.out[0].dtype;
  require(sum == dtype || sum == wide_dtype(dtype),
          "the dtype of the sum must be that of the terms or of their accumulator");
}

namespace {

void supports(const orr_op& op, orr_support& out) {
  require_summed(op);
  out.strided_in = ~0u;
  orr::copy_text(out.numerics, "cuda.pointwise/2+reduce.1: sums as in ops.h");
}

uint64_t measure(const orr_op& op) { return summed_plan(op).workspace(); }

std::unique_ptr<Prepared> prepare(const orr_op& op) {
  const Summed first(op);
  const int32_t dtype = first.made.dtype;
  return std::make_unique<ColumnSums>(first.op, summed_plan(op), dtype, kFoldSum,
                                      op.out[0].dtype == dtype, ColumnSums::Results{});
}

}  // namespace

const Family pointwise_sum_family = {"pointwise_sum", supports, measure, prepare};

}  // namespace orr_cuda
