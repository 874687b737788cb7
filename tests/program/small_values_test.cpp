// SPDX-License-Identifier: Apache-2.0
//
// Small values that are computed once (lower/kernels/share_equal.cpp), and 16-bit tensors that are
// summed as they are stored (lower/kernels/sum_as_stored.cpp): which are, and that no bit changes.
#include "launched_kinds.h"
#include "program/build.h"

namespace program_test {
namespace {

using namespace orrery;

// Gives so many values that are each the softmax of x plus a number.
Program sums_with(const std::vector<double>& numbers, int64_t elements) {
  Program p;
  const ValueId x = p.input("x", {ORR_F32, {1, elements}});
  for (size_t i = 0; i < numbers.size(); ++i) {
    const ValueId y = p.pointwise(ORR_FN_MUL, {x, Operand::number(numbers[i])});
    give(p, "y" + std::to_string(i), p.add1("softmax", {p.add1("softmax", {y})}));
  }
  return p;
}

int64_t products(const Program& p) { return count(kinds(p), "pointwise"); }

TEST(EqualValues, AreComputedOnceWhereTheyAreSmall) {
  const auto given = [](const Program& p) { return int64_t(p.outputs().size()); };
  const Program alike = sums_with({3, 3, 3}, 64), others = sums_with({3, 4, 3}, 64);
  EXPECT_EQ(products(alike) - given(alike), 1);
  EXPECT_EQ(products(others) - given(others), 2);
  expect_equal_bits(alike), expect_equal_bits(others);
}

TEST(EqualValues, AreNotThoseOfZerosOfBothSigns) {
  const Program p = sums_with({0.0, -0.0}, 64);
  EXPECT_EQ(products(p), 4);
  expect_equal_bits(p);
}

TEST(EqualValues, StayApartWhereTheyAreLarge) {
  EXPECT_EQ(products(sums_with({3, 3}, 1024)), 3);
  EXPECT_EQ(products(sums_with({3, 3}, 1025)), 4);
}

TEST(EqualValues, OfForwardAreNotKeptForBackward) {
  Program p;
  const ValueId x = p.input("x", {ORR_F32, {1, 8}});
  give(p, "first", p.add1("softmax", {p.pointwise(ORR_FN_MUL, {x, x})}));
  p.set_phase(Phase::backward);
  give(p, "second", p.add1("softmax", {p.pointwise(ORR_FN_MUL, {x, x})}));
  EXPECT_EQ(products(p), 4);
}

// The mean over dim 1 of a 16-bit tensor; with `read`, something else reads its cast, too.
Program mean_of(int32_t dtype, bool read) {
  Program p;
  const ValueId x = p.cast(p.input("x", {ORR_F32, {3, 70, 5}}), dtype);
  const ValueId wide = p.cast(p.add1("softmax", {x}), ORR_F32);
  give(p, "sum", build::reduce(p, "sum", wide, {1}, false));
  if (read) give(p, "rest", p.add1("softmax", {wide}));
  return p;
}

TEST(SumsOfCasts, ReadWhatIsStored) {
  for (int32_t dtype : {ORR_BF16, ORR_F16}) {
    const Program p = mean_of(dtype, false);
    EXPECT_EQ(kinds(p), (Kinds{"pointwise", "softmax", "reduce", "pointwise"}));
    expect_equal_bits(p);
  }
}

TEST(SumsOfCasts, StayWhereTheCastIsReadOtherwise) {
  const Program p = mean_of(ORR_BF16, true);
  EXPECT_EQ(count(kinds(p), "cast + sum"), 1);
  expect_equal_bits(p);
}

}  // namespace
}  // namespace program_test
