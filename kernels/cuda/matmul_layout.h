// SPDX-License-Identifier: Apache-2.0
//
// Matrix products as cuBLASLt wants them: column-major, so that what it computes is y^T = b^T a^T.
#pragma once

#include <orrery/kernel.h>

#include <optional>

namespace orr_cuda {

// A [batch, rows, cols] operand seen column-major: its transpose where `turned` is false, else
// itself.
struct Matrix {
  int64_t rows, cols, leading, batch_stride;
  bool turned;
};

// y[g,m,n] = sum over k of a[g,m,k] * b[g,k,n].
struct MatmulShape {
  explicit MatmulShape(const orr_op& op);  // throws Unsupported

  int32_t dtype;
  int64_t g, m, n, k;
  // Empty where strides allow no view: rows that overlap, or no dim of step 1.
  std::optional<Matrix> a, b, y;
  bool rows_summed;  // a is turned: K is the batch, M is a dim of the model
  bool fast;         // any order of sums will do, and TF32
};

// A [batch, rows, cols] tensor that is not turned; empty where its strides allow no view.
std::optional<Matrix> view_of(const orr_tensor& t);

// The largest power of two, at most 16, that divides the bytes of every step of the three matrices.
int64_t alignment_of(const MatmulShape& shape);

}  // namespace orr_cuda
