// SPDX-License-Identifier: Apache-2.0
//
// Operands of a matmul that have more dims where they lie than the product reads: kernels get them
// as rows and columns of several dims, without a copy.
#include <gtest/gtest.h>

#include "program/op.h"

namespace orrery {
namespace {

KernelForm form_of(const Dims& a, const Dims& b, const Dims& y) {
  const auto lying = [](const Dims& dims) { return Strided::contiguous({ORR_F32, dims}); };
  Op op;
  op.kind = "matmul";
  return op_def("matmul").form(op, {lying(a), lying(b)}, {lying(y)});
}

TEST(MatmulForm, ReadsRowsAndColumnsOfSeveralDims) {
  const KernelForm form = form_of({5, 4, 6, 2}, {12, 24}, {20, 24});
  EXPECT_TRUE(form.copy.empty());
  EXPECT_EQ(form.in[0].dims, (Dims{1, 20, 12}));
  EXPECT_EQ(form.in[0].strides, (Dims{0, 12, 1}));
}

TEST(MatmulForm, ReadsOneRowWhoseDimsAreAllColumns) {
  const KernelForm form = form_of({3, 6, 2}, {36, 24}, {1, 24});
  EXPECT_TRUE(form.copy.empty());
  EXPECT_EQ(form.in[0].dims, (Dims{1, 1, 36}));
  EXPECT_EQ(form.in[0].strides[2], 1);
}

}  // namespace
}  // namespace orrery
