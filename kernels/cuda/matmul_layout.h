// SPDX-License-Identifier: Apache-2.0
//
// Describes matrix products for cuBLASLt, which is column-major: it computes y^T = b^T a^T.
#pragma once

#include <cuda.h>
#include <orrery/kernel.h>

#include <optional>

namespace orr_cuda {

// A [batch, rows, cols] operand in column-major form: its transpose, or with `turned` the operand
// itself.
struct Matrix {
  int64_t rows, cols, leading, batch_stride;
  bool turned;
};

// y[g,m,n] = sum over k of a[g,m,k] * b[g,k,n].
struct MatmulShape {
  explicit MatmulShape(const orr_op& op);  // throws Unsupported
  // The product of one leaf of `depth` elements. REQUIRES: there are a, b and y.
  MatmulShape of_leaf(int64_t depth) const;

  int32_t dtype, dtype_b, dtype_y;  // of a, b and y
  int64_t g, m, n, k;
  // Empty if the strides have no such form: rows overlap, or no dim has stride 1.
  std::optional<Matrix> a, b, y;
  bool rows_summed;  // a is turned: K is the batch, M is a dim of the model
  bool fast;         // any order of sums is allowed, and TF32
  // Of eight bits: whether the product reads a copy, whose rows of K lie one after another.
  bool copies_a = false, copies_b = false;

 private:
  void be_of_eight_bits(int64_t leaves);
};

// The form of a [batch, rows, cols] tensor; empty if its strides have none.
std::optional<Matrix> view_of(const orr_tensor& t, bool may_turn = false);

// Where a product reads and writes; the last three are those of an epilogue (epilogue.h).
struct ProductPlaces {
  CUdeviceptr a, b, y, workspace, bias = 0, added = 0, aux = 0;
};

// What the addresses of the matrices, or of all their rows, are multiples of, in bytes.
struct Alignment {
  int64_t a, b, y;

  bool fits(const ProductPlaces& at) const {
    return at.a % uint64_t(a) == 0 && at.b % uint64_t(b) == 0 && at.y % uint64_t(y) == 0;
  }
};

// The largest powers of two, at most 16, that divide the strides of each matrix.
Alignment alignment_of(const MatmulShape& shape);

}  // namespace orr_cuda
