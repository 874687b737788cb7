// SPDX-License-Identifier: Apache-2.0
#include "norm.h"

#include "../device/norm.h"
#include "require_nodes.h"

namespace orr_cuda {
namespace {

// rows_in tensors [R,C], vectors_in weights [C], statistics_in statistics [R]; out y [R,C] and
// statistics.
void supports(const orr_op& op, orr_support& out, int rows_in, int vectors_in, int statistics_in,
              int statistics_out) {
  require_counts(op, rows_in + vectors_in + statistics_in, 1 + statistics_out);
  require_rows(op.in[0]);
  require_real(op.in[0], "x");
  const int64_t rows = op.in[0].dims[0], columns = op.in[0].dims[1];
  const int32_t dtype = op.in[0].dtype, wide = wide_dtype(dtype);
  require(columns > 0, "rows must not be empty");
  for (int i = 1; i < rows_in; ++i) {
    require_dtype(op.in[i], dtype, "x");
    require_shape(op.in[i], {rows, columns}, "x");
  }
  for (int i = 0; i < vectors_in; ++i) require_vector(op.in[rows_in + i], dtype, columns, "w or b");
  for (int i = 0; i < statistics_in; ++i)
    require_vector(op.in[rows_in + vectors_in + i], wide, rows, "mean or rstd");
  require_dtype(op.out[0], dtype, "the first output");
  require_shape(op.out[0], {rows, columns}, "the first output");
  for (int i = 1; i <= statistics_out; ++i) require_vector(op.out[i], wide, rows, "mean or rstd");
  out.inplace = 1;
  orr::copy_text(out.numerics, std::string("cuda.") + op.kind + ".1: sums as in ops.h");
}

void supports_layernorm(const orr_op& op, orr_support& out) { supports(op, out, 1, 2, 0, 2); }
void supports_layernorm_grad(const orr_op& op, orr_support& out) { supports(op, out, 2, 1, 2, 0); }
void supports_rmsnorm(const orr_op& op, orr_support& out) { supports(op, out, 1, 1, 0, 1); }
void supports_rmsnorm_grad(const orr_op& op, orr_support& out) { supports(op, out, 2, 1, 1, 0); }

std::unique_ptr<Prepared> prepare(const orr_op& op) { return std::make_unique<Norm>(op); }

}  // namespace

void require_norm_params(const orr_op& op) {
  const bool rms = orr::attr_int(op, "rms", 0) == 1;
  require_counts(op, rms ? 3 : 4, rms ? 1 : 2);
  require_rows(op.in[0]);
  require_real(op.in[0], "dy");
  const int64_t rows = op.in[0].dims[0], columns = op.in[0].dims[1];
  require_dtype(op.in[1], op.in[0].dtype, "x");
  require_shape(op.in[1], {rows, columns}, "x");
  for (int i = 2; i < op.n_in; ++i)
    require_vector(op.in[i], wide_dtype(op.in[0].dtype), rows, "mean or rstd");
  require_leaves(op, rows);
  for (int i = 0; i < op.n_out; ++i) {
    require_dtype(op.out[i], op.in[0].dtype, "dw or db");
    require_nodes(op, op.out[i], {columns}, "dw or db");
  }
}

Norm::Norm(const orr_op& op)
    : rms_(op.kind[0] == 'r'),
      grad_(op.n_out == 1),
      rows_(function_name(grad_ ? "input_grad" : op.kind, op.in[0].dtype), op.in[0], grad_ ? 2 : 1),
      eps_(orr::attr_real(op, "eps", 1e-5)) {}

void Norm::launch(CUstream stream, const Buffers& b, const Residual& residual) {
  NormArgs args{};
  args.y = pointer(b.out[0]);
  args.eps = eps_;
  if (grad_) {
    args.dy = pointer(b.in[0]);
    args.x = pointer(b.in[1]);
    args.w = pointer(b.in[2]);
    args.mean = rms_ ? nullptr : pointer(b.in[3]);
    args.rstd = pointer(b.in[rms_ ? 3 : 4]);
  } else {
    args.x = pointer(b.in[0]);
    args.w = pointer(b.in[1]);
    args.b = rms_ ? nullptr : pointer(b.in[2]);
    args.mean = rms_ ? nullptr : pointer(b.out[1]);
    args.rstd = pointer(b.out[rms_ ? 1 : 2]);
    args.bias = pointer(residual.bias), args.added = pointer(residual.added);
    args.sum = pointer(residual.sum);
  }
  rows_(stream, args);
}

extern const Family layernorm_family, layernorm_grad_family, rmsnorm_family, rmsnorm_grad_family;
const Family layernorm_family = {"layernorm", supports_layernorm, nullptr, prepare};
const Family layernorm_grad_family = {"layernorm_grad", supports_layernorm_grad, nullptr, prepare};
const Family rmsnorm_family = {"rmsnorm", supports_rmsnorm, nullptr, prepare};
const Family rmsnorm_grad_family = {"rmsnorm_grad", supports_rmsnorm_grad, nullptr, prepare};

}  // namespace orr_cuda
