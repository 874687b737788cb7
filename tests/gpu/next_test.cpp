// SPDX-License-Identifier: Apache-2.0
//
// pointwise_next and the sums of generated kernels on the fake, with shapes beyond the suite's:
// leaves, sums of several stages, rows that do not fit into shared memory. Bits are the
// reference's.
#include <gtest/gtest.h>

#include "conformance/kernel/cases.h"
#include "conformance/kernel/compare.h"
#include "fake_step.h"

namespace {

using namespace fake_step;
using kernel_suite::integer;
using kernel_suite::real;
using kernel_suite::strided;
using kernel_suite::text;

void expect_reference(const Case& c, const kernel_suite::RunOptions& options = {}) {
  device();
  const auto inputs = kernel_suite::make_inputs(c, false, 4);
  const auto got = kernel_suite::run("cuda", c, inputs, options);
  ASSERT_EQ(got.unsupported, "") << c.note;
  EXPECT_EQ(kernel_suite::trouble(got), "") << c.note;
  EXPECT_EQ(got.bits, kernel_suite::run("reference", c, inputs).bits) << c.note;
}

// x * y, where y is repeated along the columns, and the sums over the rows of the leaves [lo, lo +
// n) of `total`.
Case sums(int32_t dtype, int64_t rows, int64_t columns, int64_t lo, int64_t n, int64_t total) {
  Case c;
  c.kind = "pointwise_next";
  c.note = kernel_suite::shape_note({rows, columns, lo, n, total});
  c.in = {tensor(dtype, {rows, columns}), strided(dtype, {rows, columns}, {1, 0})};
  c.out = {tensor(dtype, {rows, columns}),
           tensor(dtype, {orr_tree_nodes(lo, lo + n, total), columns})};
  c.attrs = {text("next", "reduce"), text("fn", "sum"), integer("leaf_lo", lo),
             integer("leaf_n", n), integer("leaf_total", total)};
  c.instrs = {{ORR_FN_INPUT, dtype, 0, 0, 0, 0, 0},
              {ORR_FN_INPUT, dtype, 1, 0, 0, 0, 0},
              {ORR_FN_MUL, dtype, 0, 1, 0, 0, 0}};
  c.stored = {2};
  return c;
}

TEST(FakeNext, SumsOfLeavesAndOfSeveralStages) {
  for (int32_t dtype : {ORR_F32, ORR_BF16}) {
    expect_reference(sums(dtype, 66000, 8, 0, 1, 1));
    expect_reference(sums(dtype, 13 * 67, 24, 0, 13, 13));
    expect_reference(sums(dtype, 6 * 67, 24, 3, 6, 13));
    expect_reference(sums(dtype, 130, 24, 0, 1, 1), {.misalign = 1});
  }
}

// The sums of x * y over the rows of each image, y being one number for each image and column; of
// one image perhaps those of the leaves [3, 9) of 13.
void expect_sums(int32_t dtype, int64_t images, int64_t rows, int64_t columns, bool leaves) {
  Case both = leaves ? sums(dtype, rows, columns, 3, 6, 13) : sums(dtype, rows, columns, 0, 1, 1);
  both.kind = "pointwise_sum";
  both.in = {tensor(dtype, {images, rows, columns}),
             strided(dtype, {images, rows, columns}, {columns, 0, 1})};
  both.out = {tensor(ORR_F32, {leaves ? orr_tree_nodes(3, 9, 13) : images, columns})};
  both.attrs.push_back(integer("outer", images)), both.attrs.push_back(integer("columns", columns));
  if (!leaves) std::erase_if(both.attrs, [](const auto& a) { return a.name.starts_with("leaf"); });
  Case terms = both, sum = both;
  terms.kind = "pointwise", terms.out = {both.in[0]}, terms.attrs = {};
  sum.kind = "reduce", sum.in = {both.in[0]}, sum.instrs = {}, sum.stored = {};
  const auto inputs = kernel_suite::make_inputs(both, false, 4);
  const auto apart = kernel_suite::run("reference", terms, inputs);
  const auto got = kernel_suite::run("cuda", both, inputs);
  ASSERT_EQ(got.unsupported, "") << both.note;
  EXPECT_EQ(kernel_suite::trouble(got), "") << both.note;
  EXPECT_EQ(got.bits, kernel_suite::run("reference", sum, apart.values).bits) << both.note;
}

TEST(FakeNext, SumsOfWhatIsNotStored) {
  device();
  for (int32_t dtype : {ORR_F32, ORR_BF16}) {
    expect_sums(dtype, 3, 130, 24, false);
    expect_sums(dtype, 2, 64, 5, false);
    expect_sums(dtype, 1, 9000, 8, false);
    expect_sums(dtype, 1, 6 * 67, 24, true);
  }
}

// Nothing is written where nothing is read: output 0 stays as it was.
TEST(FakeNext, SumsOfWhatIsNotRead) {
  device();
  Case c = sums(ORR_BF16, 130, 24, 0, 1, 1);
  const auto inputs = kernel_suite::make_inputs(c, false, 4);
  const auto wanted = kernel_suite::run("reference", c, inputs);
  c.attrs.push_back(integer("unread", 1));
  const auto got = kernel_suite::run("cuda", c, inputs);
  EXPECT_EQ(kernel_suite::trouble(got), "");
  EXPECT_EQ(got.bits[1], wanted.bits[1]);
  EXPECT_EQ(got.bits[0], std::vector<uint8_t>(130 * 24 * 2, 0xff));
}

// Sums of x * y and of x, which the kernel reads once.
void expect_two_sums(int32_t dtype, int64_t rows, int64_t columns, int64_t lo, int64_t n) {
  Case both = sums(dtype, rows, columns, lo, n, 13);
  both.stored = {2, 0}, both.out = {both.out[0], both.out[0], both.out[1], both.out[1]};
  both.attrs.push_back(integer("unread", 3));
  const Case first = sums(dtype, rows, columns, lo, n, 13);
  Case alone = first;
  alone.kind = "reduce", alone.in = {tensor(dtype, {1, rows, columns})}, alone.out = {first.out[1]};
  alone.instrs = {}, alone.stored = {};
  const auto inputs = kernel_suite::make_inputs(both, false, 4);
  const auto got = kernel_suite::run("cuda", both, inputs);
  ASSERT_EQ(got.unsupported, "") << both.note;
  EXPECT_EQ(kernel_suite::trouble(got), "") << both.note;
  EXPECT_EQ(got.bits[2], kernel_suite::run("reference", first, inputs).bits[1]) << both.note;
  EXPECT_EQ(got.bits[3], kernel_suite::run("reference", alone, {inputs[0]}).bits[0]) << both.note;
}

TEST(FakeNext, TwoSums) {
  device();
  for (int32_t dtype : {ORR_F32, ORR_BF16}) {
    expect_two_sums(dtype, 13 * 67, 24, 0, 13);
    expect_two_sums(dtype, 6 * 67, 24, 3, 6);
    expect_two_sums(dtype, 4500, 24, 0, 1);
    expect_two_sums(dtype, 60, 5, 0, 1);
  }
}

// The gradients of a norm's parameters: of all rows, or of the leaves [3, 9) of 13.
Case params(int32_t dtype, int64_t rows, int64_t columns, bool rms, bool leaves) {
  const orr_tensor x = tensor(dtype, {rows, columns}), s = tensor(ORR_F32, {rows}),
                   w = tensor(dtype, {leaves ? orr_tree_nodes(3, 9, 13) : 1, columns});
  Case c;
  c.kind = "norm_param_grad", c.note = kernel_suite::shape_note({rows, columns, rms, leaves});
  c.in = {x, x, s}, c.out = {w};
  c.attrs = {integer("rms", rms)};
  if (!rms) c.in.push_back(s), c.out.push_back(w);
  if (leaves)
    for (const auto& [name, n] : {std::pair{"leaf_lo", 3}, {"leaf_n", 6}, {"leaf_total", 13}})
      c.attrs.push_back(integer(name, n));
  return c;
}

TEST(FakeNext, ParametersOfNorms) {
  for (bool rms : {false, true}) {
    expect_reference(params(ORR_BF16, 33000, 5, rms, false));
    expect_reference(params(ORR_F32, 70, 9000, rms, false));
    expect_reference(params(ORR_BF16, 6 * 67, 24, rms, true));
  }
}

TEST(FakeNext, FoldsOfColumns) {
  for (int32_t dtype : {ORR_F32, ORR_BF16, ORR_I32, ORR_U8})
    for (const char* fn : {"sum", "sumsq", "max", "min"})
      for (const auto& [rows, columns] : {std::pair{33000, 3}, {70, 24}, {1, 17}}) {
        Case c;
        c.kind = "reduce", c.note = kernel_suite::shape_note({dtype, rows, columns}) + fn;
        c.in = {tensor(dtype, {2, rows, columns})}, c.out = {tensor(dtype, {2, columns})};
        c.attrs = {text("fn", fn)};
        expect_reference(c);
        expect_reference(c, {.misalign = 1});
      }
}

// The norm of x + r, of (x + bias) + r, or with `last` of (x + r) + bias.
Case norm_of_sum(int32_t dtype, int64_t columns, bool biased, bool last = false) {
  const orr_tensor rows = tensor(dtype, {3, columns}), w = tensor(dtype, {columns}),
                   s = tensor(ORR_F32, {3});
  Case c;
  c.kind = "pointwise_next", c.note = kernel_suite::shape_note({columns, biased, last});
  c.attrs = {text("next", "layernorm"), real("eps", 1e-5)};
  c.in = {rows, rows}, c.out = {rows, rows, s, s};
  const auto push = [&](int32_t fn, int32_t a, int32_t b) {
    c.instrs.push_back({fn, dtype, a, b, 0, 0, 0});
    return int32_t(c.instrs.size()) - 1;
  };
  const int32_t x = push(ORR_FN_INPUT, 0, 0), r = push(ORR_FN_INPUT, 1, 0);
  if (biased) {
    c.in.push_back(strided(dtype, {3, columns}, {0, 1}));
    const int32_t bias = push(ORR_FN_INPUT, 2, 0), sum = push(ORR_FN_ADD, last ? r : bias, x);
    push(ORR_FN_ADD, last ? bias : r, sum);
  } else {
    push(ORR_FN_ADD, r, x);
  }
  c.stored = {int32_t(c.instrs.size()) - 1};
  c.in.insert(c.in.end(), {w, w});
  return c;
}

// 70,000 elements of f32 do not fit into shared memory.
TEST(FakeNext, NormsOfRowsOfAnyLength) {
  for (int32_t dtype : {ORR_F32, ORR_BF16})
    for (int64_t n : {1024, 4099, 70000})
      for (bool biased : {false, true}) {
        expect_reference(norm_of_sum(dtype, n, biased));
        expect_reference(norm_of_sum(dtype, n, biased), {.misalign = 1});
      }
}

// It rounds in another order.
TEST(FakeNext, ABiasThatIsAddedLastIsLeftToTwoOps) {
  const Case c = norm_of_sum(ORR_BF16, 64, true, true);
  EXPECT_NE(kernel_suite::run("cuda", c, kernel_suite::make_inputs(c, false, 4)).unsupported, "");
}

}  // namespace
