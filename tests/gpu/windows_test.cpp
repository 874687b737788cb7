// SPDX-License-Identifier: Apache-2.0
//
// Emulated: products that read the windows of convolutions where they lie, beside the reference.
#include <gtest/gtest.h>

#include <random>

#include "conformance/kernel/cases.h"
#include "conformance/kernel/compare.h"
#include "direct.h"
#include "emulator/block.h"

namespace emulated {
namespace {

using namespace kernel_suite;
using Dims = std::vector<int64_t>;

// The windows of x[images, height, width, groups * channels], as they lie.
struct Windows {
  int64_t images, height, width, channels, size, stride, dilation, groups = 1;

  int64_t along(int64_t n) const { return (n - (size - 1) * dilation - 1) / stride + 1; }
  int64_t positions() const { return images * along(height) * along(width); }
  int64_t columns() const { return size * size * channels; }

  orr_tensor operand(int32_t dtype) const {
    const int64_t place = groups * channels, row = width * place;
    Dims dims{groups, images, along(height), along(width), size};
    Dims strides{groups == 1 ? 0 : channels, height * row, stride * row, stride * place,
                 dilation * row};
    if (dilation == 1 && groups == 1) {
      dims.push_back(size * channels), strides.push_back(1);
    } else {
      dims.insert(dims.end(), {size, channels});
      strides.insert(strides.end(), {dilation * place, 1});
    }
    return strided(dtype, dims, strides);
  }
  std::string note() const {
    return shape_note({images, height, width, channels, size, stride, dilation, groups});
  }
};

// Groups lie beside each other in a row of y.
Case product(const orr_tensor& a, const orr_tensor& b, int64_t m, int64_t n, int64_t k) {
  const int64_t groups = a.dims[0];
  Case c;
  c.kind = "matmul";
  c.in = {a, b};
  c.out = {strided(a.dtype, {groups, m, n}, {groups == 1 ? m * n : n, groups * n, 1})};
  c.depth = double(k) + 1;
  return c;
}

// The weight lies as [outputs, K], or for the gradient of an input as [K, outputs].
Case forward(const Windows& w, int32_t dtype, int64_t outputs, bool turned) {
  const int64_t k = w.columns();
  const orr_tensor weight = turned ? tensor(dtype, {w.groups, k, outputs})
                                   : strided(dtype, {w.groups, k, outputs}, {k * outputs, 1, k});
  Case c = product(w.operand(dtype), weight, w.positions(), outputs, k);
  c.note = w.note() + shape_note({outputs}) + (turned ? "nn" : "nt");
  return c;
}

Case weight_gradient(const Windows& w, int32_t dtype, int64_t outputs, int64_t leaves) {
  const int64_t k = w.positions(), g = w.groups;
  const orr_tensor dy = strided(dtype, {g, outputs, k}, {outputs, 1, g * outputs});
  Case c = product(dy, w.operand(dtype), outputs, w.columns(), k);
  c.note = w.note() + shape_note({outputs, leaves}) + "weight";
  c.out = {tensor(dtype, {g, outputs, w.columns()})};
  if (leaves == 1) return c;
  c.attrs = {integer("leaf_lo", 0), integer("leaf_n", leaves), integer("leaf_total", leaves)};
  const int64_t nodes = orr_tree_nodes(0, leaves, leaves);
  c.out = {g == 1 ? tensor(dtype, {nodes, outputs, w.columns()})
                  : tensor(dtype, {nodes, g, outputs, w.columns()})};
  return c;
}

Case fast(Case c) {
  c.attrs.push_back(text("numerics", "fast"));
  return c;
}

void expect_reference(const Case& c, bool exact = false) {
  const std::vector<Values> inputs = make_inputs(c, exact, 8);
  Case dense = c;  // the reference writes no strides
  dense.out[0] = tensor(c.out[0].dtype, {c.out[0].dims, c.out[0].dims + c.out[0].rank});
  const RunResult got = run(c, inputs, {}, 5),
                  reference = kernel_suite::run("reference", dense, inputs);
  ASSERT_EQ(got.unsupported, "") << c.name();
  ASSERT_EQ(trouble(got), "") << c.name();
  EXPECT_EQ(
      exact ? difference(got.values, reference.values) : distance(c, got.values, reference.values),
      "")
      << c.name();
  const RunResult shifted = run(c, inputs, {.misalign = 1}, 6);
  EXPECT_EQ(shifted.bits, got.bits) << c.name() << " shifted by one element, in another order";
}

// Channels that fill packets of 16 bytes and such that do not.
std::vector<Windows> some_windows() {
  std::vector<Windows> all = {{2, 8, 7, 3, 3, 1, 1},   {1, 9, 9, 16, 3, 2, 1},
                              {2, 7, 9, 8, 2, 1, 3},   {3, 5, 5, 40, 1, 2, 1},
                              {1, 6, 20, 24, 3, 1, 1}, {2, 6, 7, 8, 3, 1, 1, 3},
                              {2, 7, 6, 5, 3, 2, 1, 4}};
  std::mt19937 random(20);
  const auto draw = [&](int64_t lo, int64_t hi) {
    return std::uniform_int_distribution<int64_t>(lo, hi)(random);
  };
  while (all.size() < 14) {
    Windows w{draw(1, 3), draw(4, 9), draw(4, 9), draw(1, 3) * (draw(0, 1) ? 8 : 5),
              draw(1, 3), draw(1, 3), draw(1, 2), all.size() % 2 ? 2 : 1};
    if (w.size > 1 || w.stride > 1) all.push_back(w);
  }
  return all;
}

TEST(EmulatedWindows, AgreeWithReference) {
  for (const Windows& w : some_windows())
    for (int32_t dtype : {ORR_BF16, ORR_F16, ORR_F32}) {
      expect_reference(forward(w, dtype, 24, false));
      expect_reference(forward(w, dtype, 72, true));
      expect_reference(weight_gradient(w, dtype, 9, 1));
      expect_reference(weight_gradient(w, dtype, 80, w.images));
    }
}

// What a product and the addition of a bias apart give, to the bit.
void expect_biased(const Case& c) {
  const orr_tensor &y = c.out[0], bias = strided(y.dtype, {y.dims[0], y.dims[1], y.dims[2]},
                                                 {y.dims[0] == 1 ? 0 : y.dims[2], 0, 1});
  Case both = c, add;
  both.kind = "matmul_pointwise", both.in.push_back(bias);
  add.kind = "pointwise", add.in = {tensor(y.dtype, {y.dims[0], y.dims[1], y.dims[2]}), bias};
  add.out = {add.in[0]};
  both.instrs = add.instrs = {{ORR_FN_INPUT, y.dtype, 0, 0, 0, 0, 0},
                              {ORR_FN_INPUT, y.dtype, 1, 0, 0, 0, 0},
                              {ORR_FN_ADD, y.dtype, 0, 1, 0, 0, 0}};
  both.stored = add.stored = {2};
  const std::vector<Values> inputs = make_inputs(both, false, 8);
  const RunResult product = run(c, {inputs[0], inputs[1]}, {}, 5);
  const RunResult wanted = kernel_suite::run("reference", add, {product.values[0], inputs[2]});
  for (int64_t shift : {0, 1}) {
    const RunResult got = run(both, inputs, {.misalign = shift}, 6);
    ASSERT_EQ(got.unsupported, "") << c.name();
    ASSERT_EQ(trouble(got), "") << c.name();
    EXPECT_EQ(got.bits, wanted.bits) << c.name();
  }
}

TEST(EmulatedWindows, ABiasIsAddedToTheRoundedProduct) {
  for (const Windows& w : some_windows())
    for (int32_t dtype : {ORR_BF16, ORR_F16, ORR_F32}) {
      expect_biased(forward(w, dtype, 24, false));
      expect_biased(forward(w, dtype, 71, false));
    }
}

TEST(EmulatedWindows, WhatElseFollowsIsLeftToAnotherOp) {
  Case c = forward({2, 8, 7, 3, 3, 1, 1}, ORR_F32, 24, false);
  c.kind = "matmul_pointwise", c.instrs = {{ORR_FN_INPUT, ORR_F32, 0, 0, 0, 0, 0},
                                           {ORR_FN_INPUT, ORR_F32, 1, 0, 0, 0, 0},
                                           {ORR_FN_MUL, ORR_F32, 0, 1, 0, 0, 0}};
  c.in.push_back(strided(ORR_F32, {1, c.out[0].dims[1], 24}, {0, 0, 1})), c.stored = {2};
  EXPECT_NE(run(c, make_inputs(c, false, 8)).unsupported, "");
  c.instrs[2].fn = ORR_FN_ADD;
  EXPECT_EQ(run(c, make_inputs(c, false, 8)).unsupported, "");
  c.in[2] = c.out[0];  // no bias
  EXPECT_NE(run(c, make_inputs(c, false, 8)).unsupported, "");
}

// Sums of integers are exact, also of TF32 factors.
TEST(EmulatedWindows, AddEveryProductOnce) {
  for (const Windows& w : some_windows())
    for (int32_t dtype : {ORR_BF16, ORR_F32}) {
      expect_reference(fast(forward(w, dtype, 72, false)), true);
      expect_reference(fast(forward(w, dtype, 24, true)), true);
      expect_reference(fast(weight_gradient(w, dtype, 70, 1)), true);
      expect_reference(fast(weight_gradient(w, dtype, 9, 1)), true);
    }
}

// K of 2,560 in f32 is more than the reference adds in one block; in parts if it is the batch.
TEST(EmulatedWindows, LongSums) {
  const Windows deep{1, 5, 4, 288, 3, 1, 1}, large{3, 24, 38, 3, 3, 1, 1};
  for (int32_t dtype : {ORR_BF16, ORR_F32}) {
    expect_reference(forward(deep, dtype, 136, false));
    expect_reference(weight_gradient(large, dtype, 64, 1));
    expect_reference(weight_gradient(large, dtype, 64, 3));
  }
}

// Without windows, for the whole card; rows of 54 bytes.
TEST(EmulatedWindows, FewColumnsOfALongBatch) {
  const int64_t k = 2100;
  for (int32_t dtype : {ORR_BF16, ORR_F32})
    for (const auto& [m, n] : {std::pair{int64_t{64}, int64_t{27}}, {9, 80}})
      expect_reference(
          product(strided(dtype, {1, m, k}, {m * k, 1, m}), tensor(dtype, {1, k, n}), m, n, k));
}

// As many images or one: other tiles of the result, the same bits.
TEST(EmulatedWindows, NumberOfImagesChangesNoBit) {
  Windows all{40, 6, 6, 24, 3, 1, 1};
  for (int32_t dtype : {ORR_BF16, ORR_F32}) {
    const Case whole = forward(all, dtype, 72, false);
    const std::vector<Values> inputs = make_inputs(whole, false, 9);
    const RunResult got = run(whole, inputs, {}, 3);
    ASSERT_EQ(trouble(got), "");
    for (int64_t images : {1, 7}) {
      Windows some = all;
      some.images = images;
      const int64_t m = some.positions(), columns = some.columns();
      const std::vector<Values> few = {{inputs[0].begin(), inputs[0].begin() + m * columns},
                                       inputs[1]};
      const RunResult one = run(forward(some, dtype, 72, false), few, {}, 4);
      EXPECT_EQ(one.bits[0], kernel_suite::part(whole.out[0], got.bits[0], 1, 0, m)) << images;
    }
  }
}

// Nodes of leaves are those of ranks that have one leaf each.
TEST(EmulatedWindows, LeavesOfRanks) {
  const Windows all{4, 12, 14, 8, 3, 1, 1}, one{1, 12, 14, 8, 3, 1, 1};
  for (int32_t dtype : {ORR_BF16, ORR_F32}) {
    Case third = weight_gradient(all, dtype, 20, 4);
    third.attrs = {integer("leaf_lo", 1), integer("leaf_n", 4), integer("leaf_total", 8)};
    third.out = {tensor(dtype, {orr_tree_nodes(1, 5, 8), 20, one.columns()})};
    const std::vector<Values> inputs = make_inputs(third, false, 9);
    const RunResult got = run(third, inputs, {}, 3);
    ASSERT_EQ(trouble(got), "");
    const int64_t k = one.positions(), n = one.columns();
    Values dy;
    for (int64_t m = 0; m < 20; ++m)
      dy.insert(dy.end(), inputs[0].begin() + m * 4 * k, inputs[0].begin() + m * 4 * k + k);
    const std::vector<Values> alone = {dy, {inputs[1].begin(), inputs[1].begin() + k * n}};
    const RunResult first = run(weight_gradient(one, dtype, 20, 1), alone, {}, 4);
    EXPECT_EQ(first.bits[0], kernel_suite::part(third.out[0], got.bits[0], 0, 0, 1));
  }
}

}  // namespace
}  // namespace emulated
