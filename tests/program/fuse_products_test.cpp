// SPDX-License-Identifier: Apache-2.0
//
// Products take what follows them: which do, which stay alone, and that no bit changes.
#include <gtest/gtest.h>

#include <random>

#include "launched_kinds.h"
#include "program/build.h"
#include "run/run.h"

namespace program_test {
namespace {

using namespace orrery;

const Kinds one = {"matmul_pointwise"}, two = {"matmul", "pointwise"};

// x [rows, 70], w [70, cols] and a bias, in a program of their own.
struct Layer {
  explicit Layer(int64_t cols = 50, int64_t rows = 20)
      : x(p.input("x", {ORR_F32, {rows, 70}})),
        w(p.input("w", {ORR_F32, {70, cols}})),
        bias(p.input("bias", {ORR_F32, {cols}})),
        y(build::matmul(p, x, w)) {}

  ValueId biased() { return p.pointwise(ORR_FN_ADD, {y, bias}); }

  Named run(const std::string& kernels, bool fuse) {
    Named inputs;
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    for (ValueId v : {x, w, bias})
      for (int64_t n = p.type(v).elements(); n > 0; --n)
        inputs[p.value(v).name].push_back(normal(random));
    return Machine(p, {kernels}, {}, fuse).run(inputs);
  }

  Program p;
  ValueId x, w, bias, y;
};

// Windows are read where they lie, with a bias or without.
TEST(Products, OfWindowsTakeABias) {
  for (bool bias : {false, true}) {
    Program p;
    const ValueId x = p.input("x", {ORR_F32, {2, 6, 5, 7}}), w = p.input("w", {ORR_F32, {63, 8}});
    const ValueId rows =
        build::reshape(p, build::windows(p, x, {3, 3}, {1, 1}, {1, 1}), {2, 4, 3, 63});
    ValueId y = build::matmul(p, rows, w);
    if (bias) y = p.pointwise(ORR_FN_ADD, {y, p.input("b", {ORR_F32, {8}})});
    p.output("y", y);
    EXPECT_EQ(kinds(p, {"reference"}), Kinds{bias ? "matmul_pointwise" : "matmul"});
    expect_equal_bits(p);
  }
}

TEST(Products, TakeWhatFollowsAndKeepTheBits) {
  Layer layer;
  const ValueId before = layer.biased();
  layer.p.output("before", before);
  layer.p.output("after", layer.p.pointwise(ORR_FN_GELU, {before}));
  EXPECT_EQ(kinds(layer.p, {"reference"}), one);
  EXPECT_EQ(layer.run("reference", true), layer.run("reference", false));
}

TEST(Products, AreStoredWhereSomebodyElseReadsThem) {
  Layer layer;
  layer.p.output("sum", layer.biased());
  layer.p.output("all", build::reduce(layer.p, "sum", layer.y, {0, 1}, false));
  EXPECT_EQ(kinds(layer.p, {"reference"}), (Kinds{"matmul_pointwise", "reduce"}));
  EXPECT_EQ(layer.run("reference", true), layer.run("reference", false));
}

TEST(Products, StayAloneWhereSomebodyReadsThemBefore) {
  Layer layer;
  const ValueId all = build::reduce(layer.p, "sum", layer.y, {0, 1}, false);
  layer.p.output("sum", layer.p.pointwise(ORR_FN_ADD, {layer.y, all}));
  EXPECT_EQ(kinds(layer.p, {"reference"}), (Kinds{"matmul", "reduce", "pointwise"}));
}

TEST(Products, StayAloneWhereTheKernelsTakeThemBetterSo) {
  Layer layer;
  layer.p.output("sum", layer.biased());
  EXPECT_EQ(kinds(layer.p, {"reference", "cpu"}), two);  // cpu has no such op
}

// [2,1,50] beside [2,10,50], whose product is one of 20 rows.
TEST(Products, StayAloneBesideWhatRepeatsOnlyInParts) {
  Program p;
  const ValueId x = p.input("x", {ORR_F32, {2, 10, 70}}), w = p.input("w", {ORR_F32, {70, 50}});
  const ValueId part = p.input("part", {ORR_F32, {2, 1, 50}});
  p.output("sum", p.pointwise(ORR_FN_ADD, {build::matmul(p, x, w), part}));
  EXPECT_EQ(kinds(p, {"reference"}), two);
}

TEST(Products, OfTwoTheLastTakesWhatReadsBoth) {
  Layer layer;
  const ValueId v = layer.p.input("bias2", {ORR_F32, {70, 50}});
  layer.p.output("gated",
                 layer.p.pointwise(ORR_FN_MUL, {layer.y, build::matmul(layer.p, layer.x, v)}));
  EXPECT_EQ(kinds(layer.p, {"reference"}), (Kinds{"matmul", "matmul_pointwise"}));
}

TEST(Products, AreNotJoinedWithCopies) {
  Layer layer;
  give(layer.p, "copy", layer.y);
  EXPECT_EQ(kinds(layer.p, {"reference"}), two);
}

// The gradient of w sums over the batch, leaf by leaf.
TEST(Products, OfLeavesStayAlone) {
  Program p;
  const ValueId x = p.batch_input("x", {ORR_F32, {64, 40}}),
                y = p.batch_input("y", {ORR_F32, {64, 50}});
  p.output("twice", p.pointwise(ORR_FN_MUL, {p.add1("total", {build::matmul(p, x, y, true, false)}),
                                             Operand::number(2)}));
  EXPECT_EQ(kinds(p, {"reference"}), two);
}

}  // namespace
}  // namespace program_test
