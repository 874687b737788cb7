// SPDX-License-Identifier: Apache-2.0
//
// Bad data is an error that names the row and the value; an op that cannot be is refused with a
// reason. The sentences are those of `reference`; every other plugin must name the same facts.
#include <gmock/gmock.h>

#include <stdexcept>

#include "compare.h"
#include "conformance/kernel/cases.h"

namespace kernel_suite {
namespace {

using ::testing::HasSubstr;

Case find(const std::vector<Case>& cases, const std::string& name) {
  for (const Case& c : cases)
    if (c.name() == name) return c;
  throw std::runtime_error("no case " + name);
}

std::string error_of(const std::string& plugin, const Case& c, size_t input, size_t at,
                     double value) {
  std::vector<Values> inputs = make_inputs(c, false, 6);
  inputs[input][at] = value;
  RunResult r = run(plugin, c, inputs);
  return r.unsupported.empty() ? r.error : r.unsupported;
}

class Errors : public ::testing::TestWithParam<std::string> {
 protected:
  void expect_names(const Case& c, size_t input, size_t at, double value,
                    std::vector<std::string> facts) {
    if (!run(GetParam(), c, make_inputs(c, false, 6)).unsupported.empty()) return;
    std::string error = error_of(GetParam(), c, input, at, value);
    for (const std::string& fact : facts) EXPECT_THAT(error, HasSubstr(fact));
  }
};

TEST_P(Errors, NameALabelOutsideTheClasses) {
  Case forward = find(cross_entropy_cases(), "cross_entropy_f32_i64_7x65");
  expect_names(forward, 1, 3, 65, {"label 65", "row 3", "65 classes"});
  expect_names(forward, 1, 0, -1, {"label -1", "row 0"});
  Case grad = find(cross_entropy_cases(), "cross_entropy_grad_f32_i64_7x65_f32");
  expect_names(grad, 2, 6, 1000, {"label 1000", "row 6"});
}

TEST_P(Errors, NameAnIndexOutsideTheTable) {
  expect_names(find(index_cases(), "gather_f32_i32_17x33x9"), 1, 30, 17,
               {"index 17", "row 30", "17 rows"});
  expect_names(find(index_cases(), "scatter_add_i32_f32_5x65x67"), 0, 2, -3,
               {"index -3", "row 2", "5 rows"});
}

TEST_P(Errors, NameASliceOutsideTheDim) {
  Case slice = find(index_cases(), "slice_at_f32_2x7x3x2x4");
  expect_names(slice, 1, 0, 6, {"at 6", "length 2", "7"});
  expect_names(slice, 1, 0, -1, {"at -1"});
  Case update = find(index_cases(), "update_slice_f32_2x7x3x2x4");
  expect_names(update, 2, 0, 6, {"at 6", "length 2", "7"});
}

INSTANTIATE_TEST_SUITE_P(All, Errors, ::testing::ValuesIn(host_plugins()));

TEST(ReferenceErrors, AreWholeSentences) {
  Case c = find(cross_entropy_cases(), "cross_entropy_f32_i64_7x65");
  EXPECT_EQ(error_of("reference", c, 1, 3, 65),
            "cross_entropy: label 65 in row 3 is outside the 65 classes (0..64) [kernel "
            "'reference', launch]");
  EXPECT_EQ(error_of("reference", find(index_cases(), "gather_f32_i32_17x33x9"), 1, 30, 17),
            "gather: index 17 in row 30 is outside the 17 rows of the table (0..16) "
            "[kernel 'reference', launch]");
}

std::string reason(Case c) { return run("reference", c, {}).unsupported; }

TEST(ReferenceSupports, GivesReasons) {
  Case c = find(matmul_cases(), "matmul_f32_1x5x6x64nn");
  c.in[1].dtype = ORR_F64;
  EXPECT_THAT(reason(c), HasSubstr("dtype of b"));
  c = find(matmul_cases(), "matmul_f32_1x5x6x64nn");
  c.out[0].dims[2] = 7;
  EXPECT_THAT(reason(c), HasSubstr("contiguous"));
  c.out[0] = tensor(ORR_F32, {1, 5, 7});
  EXPECT_THAT(reason(c), HasSubstr("shape of b"));
  c.kind = "matmull";
  EXPECT_THAT(reason(c), HasSubstr("matmull"));
}

TEST(ReferenceSupports, RefusesLeavesThatDoNotFit) {
  Case c = find(matmul_cases(), "matmul_f32_1x5x6x64nn");
  c.attrs = {integer("leaf_lo", 0), integer("leaf_n", 3), integer("leaf_total", 3)};
  EXPECT_THAT(reason(c), HasSubstr("does not divide"));
  c.attrs[1].i = 4;
  EXPECT_THAT(reason(c), HasSubstr("leaf_total"));
}

TEST(ReferenceSupports, RefusesExpressionsThatAreNotWellFormed) {
  Case c = find(pointwise_cases(), "pointwise_f32_flat15");
  c.instrs[2].b = 2;
  EXPECT_THAT(reason(c), HasSubstr("instruction 2"));
  c.instrs[2].b = 1, c.instrs[2].fn = 9999;
  EXPECT_THAT(reason(c), HasSubstr("unknown function 9999"));
  c = find(pointwise_cases(), "pointwise_i32_flat15");
  c.instrs[2].fn = ORR_FN_EXP;
  EXPECT_THAT(reason(c), HasSubstr("real"));
}

}  // namespace
}  // namespace kernel_suite
