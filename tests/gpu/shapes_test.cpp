// SPDX-License-Identifier: Apache-2.0
//
// Emulated: shapes that take other ways through the device code than the small cases of the suite:
// rows that do not fit into shared memory, sums of several stages, leaves, bad data.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "conformance/kernel/cases.h"
#include "conformance/kernel/compare.h"
#include "direct.h"

namespace emulated {
namespace {

using namespace kernel_suite;
using ::testing::HasSubstr;

Case make(const std::string& kind, std::vector<orr_tensor> in, std::vector<orr_tensor> out,
          std::vector<Attr> attrs = {}) {
  Case c;
  c.kind = kind;
  c.in = std::move(in);
  c.out = std::move(out);
  c.attrs = std::move(attrs);
  return c;
}

void expect_reference(const Case& c, const std::vector<Values>& inputs, bool bits) {
  const RunResult got = run(c, inputs, {}, 5);
  const RunResult reference = kernel_suite::run("reference", c, inputs);
  ASSERT_EQ(got.unsupported, "");
  ASSERT_EQ(trouble(got), "");
  EXPECT_EQ(
      bits ? difference(got.values, reference.values) : distance(c, got.values, reference.values),
      "")
      << c.name();
  EXPECT_EQ(run(c, inputs, {}, 6).bits, got.bits) << c.name() << " in another order of threads";
}

void expect_reference(const Case& c, bool bits) {
  expect_reference(c, make_inputs(c, false, 8), bits);
}

// Half a warp, a warp and more for a row; 70,000 elements of f32 do not fit into shared memory.
TEST(EmulatedShapes, RowsOfAnyLength) {
  for (int32_t dtype : {ORR_F32, ORR_BF16})
    for (int64_t n : {1024, 1600, 4096, 4099, 40001, 70000}) {
      const orr_tensor x = tensor(dtype, {2, n}), w = tensor(dtype, {n}), s = tensor(ORR_F32, {2});
      expect_reference(make("layernorm", {x, w, w}, {x, s, s}, {real("eps", 1e-5)}), true);
      expect_reference(make("layernorm_grad", {x, x, w, s, s}, {x}), true);
      expect_reference(make("softmax_grad", {x, x}, {x}), true);
      Case softmax = make("softmax", {x}, {x});
      softmax.depth = double(n);
      expect_reference(softmax, false);
      Case entropy = make("cross_entropy", {x, tensor(ORR_I32, {2}), s, s}, {s, s, x});
      entropy.fills = {normal(), below(n), positive(), normal()};
      entropy.depth = double(n);
      expect_reference(entropy, false);
    }
}

// Rows of 60,001 elements of 16 bits begin where 16 bytes do not, and are read in two parts, of f32
// in three and of f64 in five.
TEST(EmulatedShapes, LogitsInParts) {
  for (int32_t dtype : kReals) {
    const int64_t n = 60001;
    const orr_tensor x = tensor(dtype, {3, n}), labels = tensor(ORR_I64, {3}),
                     s = tensor(wide(dtype), {3});
    Case forward = make("cross_entropy", {x, labels, s}, {s, s});
    forward.fills = {normal(), values({n - 1, 0, 33000}), positive()};
    forward.depth = double(n);
    std::vector<Values> inputs = make_inputs(forward, false, 8);
    inputs[0][size_t(n) - 1] = 40;  // the maximum is in the last part, where the second pass begins
    inputs[2][1] = 0;
    inputs[0][size_t(n) + 7] = std::nan("");  // in a row of weight 0, whose slopes are 0
    expect_reference(forward, inputs, false);
    Case both = forward;
    both.in.push_back(s), both.out.push_back(x);
    expect_reference(both, {inputs[0], inputs[1], inputs[2], inputs[2]}, false);
    Case padded = forward;
    padded.in[0] = strided(dtype, {3, n}, {60032, 1});
    expect_reference(padded, inputs, false);
    EXPECT_EQ(run(padded, inputs).bits, run(forward, inputs).bits);
    const Values lse = kernel_suite::run("reference", forward, inputs).values[1];
    for (const orr_tensor& rows : {x, padded.in[0]}) {
      Case grad = make("cross_entropy_grad", {s, rows, labels, s, s}, {rows});
      const std::vector<Values> all = {inputs[2], inputs[0], inputs[1], inputs[2], lse};
      expect_reference(grad, all, false);
      EXPECT_EQ(run(grad, all, {.inplace = 2}).bits, run(grad, all).bits);
    }
  }
}

TEST(EmulatedShapes, SumsOfSeveralStages) {
  for (int32_t dtype : {ORR_F32, ORR_BF16, ORR_I32})
    for (const char* fn : {"sum", "sumsq", "max"}) {
      const orr_tensor row = tensor(dtype, {1, 200 * 1024 + 77, 1}), y = tensor(dtype, {1, 1});
      expect_reference(make("reduce", {row}, {y}, {text("fn", fn)}), true);
    }
}

// dx + r of all rows, and sums of the leaves [lo, lo + n) of `total`.
Case norm_grad(int32_t dtype, int64_t rows, int64_t columns, int64_t lo, int64_t n, int64_t total) {
  const orr_tensor x = tensor(dtype, {rows, columns}), w = tensor(dtype, {columns});
  const orr_tensor s = tensor(ORR_F32, {rows});
  const orr_tensor sum = tensor(dtype, {orr_tree_nodes(lo, lo + n, total), columns});
  Case c = make("norm_grad", {x, x, w, s, s, x}, {x, sum, sum, sum},
                {integer("leaf_lo", lo), integer("leaf_n", n), integer("leaf_total", total)});
  c.note = shape_note({rows, columns, lo, n, total});
  return c;
}

// Rows that are staged and rows that are not, several stages of sums, leaves.
TEST(EmulatedShapes, GradientsOfNorms) {
  for (int32_t dtype : {ORR_F32, ORR_BF16}) {
    for (int64_t n : {1600, 4096, 4099}) expect_reference(norm_grad(dtype, 70, n, 0, 1, 1), true);
    expect_reference(norm_grad(dtype, 66000, 8, 0, 1, 1), true);
    expect_reference(norm_grad(dtype, 13 * 67, 24, 0, 13, 13), true);
    expect_reference(norm_grad(dtype, 6 * 67, 24, 3, 6, 13), true);
  }
}

TEST(EmulatedShapes, SumsOfManyTensors) {
  for (int32_t dtype : {ORR_F32, ORR_BF16}) {
    Case c = make("reduce_each", {}, {}, {text("fn", "sumsq")});
    for (int64_t i = 0; i < 250; ++i)
      c.in.push_back(tensor(dtype, {i == 7 ? 3000001 : 100 * i})),
          c.out.push_back(tensor(ORR_F32, {}));
    expect_reference(c, true);
  }
}

TEST(EmulatedShapes, TokensOfOneRow) {
  for (int32_t dtype : {ORR_F32, ORR_BF16})
    for (int64_t columns : {64, 65}) {
      Case c = make("scatter_add", {tensor(ORR_I64, {700}), tensor(dtype, {700, columns})},
                    {tensor(dtype, {1100, columns})}, {integer("rows", 1100)});
      c.fills = {below(1100), normal()};
      std::vector<Values> inputs = make_inputs(c, false, 10);
      for (size_t i = 0; i < 500; ++i) inputs[0][i * 7 % 700] = 1099;
      expect_reference(c, inputs, true);
    }
}

// The leaves [lo, lo + n) of `total`: every node.
void expect_leaves(const Case& one, int64_t lo, int64_t n, int64_t total) {
  Case c = one;
  for (size_t i = 0; i < c.in.size(); ++i) {
    std::vector<int64_t> dims(c.in[i].dims, c.in[i].dims + c.in[i].rank);
    dims[size_t(c.leaf_in[i])] *= n;
    c.in[i] = tensor(c.in[i].dtype, dims);
  }
  c.attrs.push_back(integer("leaf_lo", lo));
  c.attrs.push_back(integer("leaf_n", n));
  c.attrs.push_back(integer("leaf_total", total));
  for (orr_tensor& t : c.out) {
    std::vector<int64_t> dims(t.dims, t.dims + t.rank);
    dims.insert(dims.begin(), orr_tree_nodes(lo, lo + n, total));
    t = tensor(t.dtype, dims);
  }
  c.derive = {};
  c.note += "_" + shape_note({lo, n, total});
  expect_reference(c, has_reference_bits(c));
}

TEST(EmulatedShapes, Leaves) {
  for (const Case& c : all_cases()) {
    if (c.leaf_in.empty() || c.kind == "matmul" || is_generated(c) || is_left_to_the_core(c))
      continue;
    expect_leaves(c, 0, 1, 1);
    expect_leaves(c, 0, 8, 8);
    expect_leaves(c, 0, 13, 13);
    expect_leaves(c, 3, 6, 13);
    expect_leaves(c, 5, 8, 13);
  }
}

std::string error_of(const std::string& name, size_t input, size_t at, double value) {
  for (const Case& c : all_cases()) {
    if (c.name() != name) continue;
    std::vector<Values> inputs = make_inputs(c, false, 6);
    inputs[input][at] = value;
    return run(c, inputs).error;
  }
  return "no case " + name;
}

// The sentences are the reference's.
TEST(EmulatedBadData, IsReported) {
  EXPECT_THAT(error_of("cross_entropy_f32_i64_7x65", 1, 3, 65),
              HasSubstr("cross_entropy: label 65 in row 3 is outside the 65 classes (0..64)"));
  EXPECT_THAT(error_of("cross_entropy_bf16_i32_7x65", 1, 0, -1),
              HasSubstr("cross_entropy: label -1 in row 0 is outside the 65 classes (0..64)"));
  EXPECT_THAT(error_of("cross_entropy_grad_f32_i64_7x65_f32", 2, 6, 1000),
              HasSubstr("label 1000 in row 6"));
  EXPECT_THAT(error_of("gather_f32_i32_17x33x9", 1, 30, 17),
              HasSubstr("gather: index 17 in row 30 is outside the 17 rows of the table (0..16)"));
  EXPECT_THAT(error_of("scatter_add_i32_f32_5x65x67", 0, 2, -3), HasSubstr("index -3 in row 2"));
  EXPECT_THAT(error_of("slice_at_f32_2x7x3x2x4", 1, 0, 6),
              HasSubstr("slice_at: at 6 with length 2 is outside the dim of 7"));
  EXPECT_THAT(error_of("slice_at_f32_2x7x3x2x4", 1, 0, -1), HasSubstr("at -1"));
  EXPECT_THAT(error_of("update_slice_f32_2x7x3x2x4", 2, 0, 6), HasSubstr("at 6"));
}

}  // namespace
}  // namespace emulated
