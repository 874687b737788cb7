// SPDX-License-Identifier: Apache-2.0
#include "lower/kernel_choice.h"

#include <gtest/gtest.h>

namespace orrery {
namespace {

orr_tensor tensor(const Dims& dims) { return Strided::contiguous({ORR_F32, dims}).abi(); }

// The sum of x's rows, as the plugin `reference` gets it.
Launch sum_of_rows() {
  Launch launch;
  launch.op.kind = "reduce", launch.op.attrs = {{"fn", "sum"}, {"note", Dims{1, 2}}};
  launch.in = {tensor({1, 2, 3})}, launch.out = {tensor({1, 3})};
  return launch;
}

Launch doubled() {
  Launch launch;
  launch.op.kind = "pointwise";
  Expr& e = launch.op.expr;
  const int32_t x = e.push(ORR_FN_INPUT, ORR_F32, 0);
  e.outputs = {e.push(ORR_FN_ADD, ORR_F32, x, x)};
  launch.in = launch.out = {tensor({4})};
  return launch;
}

// A choice that takes `first` refuses `other` all the same.
void expect_own_answer(const Launch& first, const Launch& other) {
  const KernelChoice asked({"reference"});
  EXPECT_TRUE(asked.takes(first)) << asked.best(first).reason;
  EXPECT_TRUE(asked.takes(first));
  EXPECT_FALSE(KernelChoice({"reference"}).takes(other));
  EXPECT_FALSE(asked.takes(other));
}

TEST(KernelChoice, KnowsNoAnswerToAnotherQuestion) {
  for (int what = 0; what < 5; ++what) {
    SCOPED_TRACE(what);
    Launch other = sum_of_rows();
    if (what == 0) other.op.attrs.set("fn", "odd");
    if (what == 1) other.in[0].dims[0] = 2;
    if (what == 2) other.out[0].strides[1] = 100;
    if (what == 3) other.in[0].dtype = ORR_BOOL;
    if (what == 4) other.op.kind = "none";
    expect_own_answer(sum_of_rows(), other);
  }
  Launch other = doubled();
  other.op.expr.instrs[1].fn = 9999;
  expect_own_answer(doubled(), other);
  other = doubled();
  other.op.expr.outputs = {7};
  expect_own_answer(doubled(), other);
}

}  // namespace
}  // namespace orrery
