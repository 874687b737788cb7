// SPDX-License-Identifier: Apache-2.0
//
// norm_grad: the input gradient of a norm, the gradients of its weight and bias, and the sum of
// what it stores, in one pass over the rows.
#include "fold_launch.h"
#include "row_op.h"

namespace orr_cuda {

namespace {

bool is_rms(const orr_op& op) { return orr::attr_int(op, "rms", 0) == 1; }

// The sums of a block.
int64_t sums_bytes(const orr_op& op) {
  return kFoldArrays * op.in[0].dims[1] * orr_dtype_bytes(wide_dtype(op.in[0].dtype));
}

FoldPlan plan_of(const orr_op& op) {
  return FoldPlan(op, 1, op.in[0].dims[0], op.in[0].dims[1], op.n_out - 1, ORR_SUM_ROWS);
}

std::string inputs(const orr_op& op) { return is_rms(op) ? "dxwr" : "dxwmr"; }

// How many outputs it has without the sum of the first.
int gradients(const orr_op& op) { return is_rms(op) ? 2 : 3; }

void supports(const orr_op& op, orr_support& out) {
  const bool adds = op.n_in > int(inputs(op).size()), sums = op.n_out > gradients(op);
  require_tensors(op, inputs(op) + (adds ? "x" : ""),
                  std::string(is_rms(op) ? "yn" : "ynn") + (sums ? "n" : ""));
  require(op.in[0].dims[1] > 0, "rows must not be empty");
  require(sums_bytes(op) <= kSharedLimit / 2, "rows too long for a block to keep their sums");
  orr::copy_text(out.numerics, "cuda.norm_grad.1: sums as in ops.h");
}

uint64_t measure(const orr_op& op) { return plan_of(op).workspace(); }

struct NormGrad : Prepared {
  explicit NormGrad(const orr_op& op)
      : inputs_(inputs(op)),
        adds_(op.n_in > int(inputs_.size())),
        sums_y_(op.n_out > gradients(op)),
        plan_(plan_of(op)),
        rows_(function_name(op.kind, op.in[0].dtype), op.in[0], 2, false, sums_bytes(op)),
        fold_(plan_, op.in[0].dtype, kFoldSum, true) {
    rows_.grid = {unsigned(plan_.segments * plan_.entries)};
  }

  void launch(CUstream stream, const Buffers& b) override {
    const Buffers sums{b.in, b.out + 1, b.workspace};
    NormGradArgs args{};
    point_to(args, inputs_, b.in);
    args.added = adds_ ? pointer(b.in[inputs_.size()]) : nullptr;
    args.y = pointer(b.out[0]);
    args.sums = fold_.first(sums), args.length = plan_.length, args.entries = plan_.entries;
    args.sums_y = sums_y_;
    rows_(stream, args);
    if (plan_.columns > 0) fold_.rest(stream, sums);
  }

  std::string inputs_;  // their names (row_op.h)
  bool adds_, sums_y_;
  FoldPlan plan_;
  RowLaunch rows_;
  FoldLaunch fold_;
};

}  // namespace

const Family norm_grad_family = {"norm_grad", supports, measure, prepare_as<NormGrad>};

}  // namespace orr_cuda
