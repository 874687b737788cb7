// SPDX-License-Identifier: Apache-2.0
//
// For authors of kernel plugins: what ops.h asks of the tensors of attention and its gradient. All
// strides are free but the last.
#pragma once

#include <orrery/sdk/attention.hpp>
#include <orrery/sdk/op_checks.hpp>

namespace orr {

inline void require_dense_rows(const orr_tensor& t) {
  require(t.dims[3] <= 1 || t.strides[3] == 1, "the last stride must be 1");
}

inline void require_like(const orr_tensor& t, const orr_tensor& x, const char* name) {
  require_dtype(t, x.dtype, name);
  require_shape(t, {x.dims[0], x.dims[1], x.dims[2], x.dims[3]}, name);
  require_dense_rows(t);
}

// f32; for f64 operands f64 is taken too, so that gradients can be checked in full precision.
inline void require_lse(const orr_tensor& t, const orr_tensor& q) {
  require(t.dtype == ORR_F32 || t.dtype == wide_dtype(q.dtype), "the dtype of lse must be f32");
  require_shape(t, {q.dims[0], q.dims[1], q.dims[2]}, "lse");
}

// q, k, v and, behind so many inputs, the bias if there is one.
inline void require_attention_operands(const orr_op& op, const orr_tensor* q, int operands) {
  const bool biased = attention_has_bias(op, operands);
  require(AttentionDropout::fits(op, operands + biased), attention_inputs);
  require_rank(q[0], 4, "q");
  require_rank(q[1], 4, "k");
  require_real(q[0], "q");
  require_like(q[0], q[0], "q");
  require_shape(q[1], {q[0].dims[0], q[1].dims[1], q[1].dims[2], q[0].dims[3]}, "k");
  require(q[1].dims[1] > 0 ? q[0].dims[1] % q[1].dims[1] == 0 : q[0].dims[1] == 0,
          "the heads of keys must divide those of queries");
  for (int i = 1; i < 3; ++i) {
    require_like(q[i], q[1], "k or v");
    require_dtype(q[i], q[0].dtype, "k or v");
  }
  if (!biased) return;
  const orr_tensor& bias = op.in[operands];
  require_dtype(bias, q[0].dtype, "the bias");
  require_shape(bias, {q[0].dims[0], q[0].dims[1], q[0].dims[2], q[1].dims[2]}, "the bias");
  require_dense_rows(bias);
}

inline void require_attention(const orr_op& op) {
  require_counts(op, op.n_in, 2);
  require_attention_operands(op, op.in, attention_operands);
  require_like(op.out[0], op.in[0], "o");
  require_lse(op.out[1], op.in[0]);
}

inline void require_attention_grad(const orr_op& op) {
  require_counts(op, op.n_in, op.n_out == 4 ? 4 : 3);
  require_attention_operands(op, op.in + 1, attention_grad_operands);
  require_like(op.in[0], op.in[1], "do");
  require_like(op.in[4], op.in[1], "o");
  require_lse(op.in[5], op.in[1]);
  for (int i = 0; i < 3; ++i) require_like(op.out[i], op.in[1 + i], "a gradient");
  if (op.n_out == 3) return;
  require(attention_has_bias(op, attention_grad_operands), "there is no bias");
  require_like(op.out[3], op.in[attention_grad_operands], "the gradient of the bias");
}

}  // namespace orr
