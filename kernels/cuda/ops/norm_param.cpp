// SPDX-License-Identifier: Apache-2.0
//
// norm_param_grad: the gradients of a norm's weight and bias, as the column sums of two
// expressions.
#include <optional>
#include <vector>

#include "column_sums.h"
#include "row_op.h"

namespace orr_cuda {
namespace {

bool is_rms(const orr_op& op) { return orr::attr_int(op, "rms", 0) == 1; }

FoldPlan plan_of(const orr_op& op) {
  return FoldPlan(op, 1, op.in[0].dims[0], op.in[0].dims[1], is_rms(op) ? 1 : 2, ORR_SUM_ROWS);
}

void supports(const orr_op& op, orr_support& out) {
  require_tensors(op, is_rms(op) ? "dxr" : "dxmr", is_rms(op) ? "n" : "nn");
  orr::copy_text(out.numerics, "cuda.norm_param_grad.1: sums as in ops.h");
}

uint64_t measure(const orr_op& op) { return plan_of(op).workspace(); }

struct NormParam : Prepared {
  explicit NormParam(const orr_op& op) {
    std::vector<orr_tensor> in(op.in, op.in + op.n_in);
    for (size_t i = 2; i < in.size(); ++i)  // one for each row
      in[i].rank = 2, in[i].dims[1] = in[0].dims[1], in[i].strides[1] = 0;
    Terms terms(in[0]);
    const int32_t dy = terms.input(in[0]);
    int32_t x = terms.input(in[1]);
    if (in.size() == 4) x = terms.push(ORR_FN_SUB, x, terms.input(in[2]));
    terms.store(terms.push(ORR_FN_MUL, terms.push(ORR_FN_MUL, dy, x), terms.input(in.back())));
    if (in.size() == 4) terms.store(dy);
    sums_.emplace(terms.op(), plan_of(op), in[0].dtype, kFoldSum, true, false);
  }

  void launch(CUstream stream, const Buffers& b) override {
    sums_->launch(stream, b.in, nullptr, b);
  }

  std::optional<ColumnSums> sums_;
};

}  // namespace

const Family norm_param_grad_family = {"norm_param_grad", supports, measure, prepare_as<NormParam>};

}  // namespace orr_cuda
