// SPDX-License-Identifier: Apache-2.0
//
// Descriptions of ops, and hooks, that a plugin passes: what cannot be is refused in words, and
// nothing behind it is read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <orrery/sdk/write.hpp>

#include "base/error.h"
#include "edit/calls.h"
#include "edit/edit_table.h"
#include "plugin/host.h"

namespace program_test {
namespace {

using namespace orrery;

class GivenOp : public testing::Test {
 protected:
  GivenOp() {
    desc.size = sizeof desc, desc.kind = "pointwise", desc.n_in = 1, desc.in = &x;
    desc.n_attrs = 1, desc.attrs = &dims, desc.expr = &expr;
  }
  std::string refusal() {
    expr.size = sizeof expr, expr.instrs = instrs.data(), expr.outputs = &output;
    try {
      edit::op_of(&handle, desc);
      return "";
    } catch (const Error& e) {
      return e.what();
    }
  }

  Program p;
  ValueId x = p.input("x", {ORR_F32, {2}});
  orr_program handle{&p, nullptr, nullptr, "mine", nullptr};
  // x * 2
  std::vector<orr_instr> instrs = {orr::instr(ORR_FN_INPUT, ORR_F32, 0),
                                   orr::instr(ORR_FN_CONST, ORR_F32),
                                   orr::instr(ORR_FN_MUL, ORR_F32, 0, 1)};
  int32_t output = 2;
  const std::vector<int64_t> two = {2};
  orr_attr dims = orr::ints_attr("dims", two);
  orr_expr expr{0, 3, 1, 0, nullptr, nullptr};
  orr_op_desc desc{};
};

TEST_F(GivenOp, IsTakenIfItFits) { EXPECT_EQ(refusal(), ""); }

TEST_F(GivenOp, ReadsEarlierRegistersOnly) {
  instrs[2].b = 2;
  EXPECT_EQ(refusal(), "pointwise: instruction 2 (mul) reads register 2, which is no earlier one");
  instrs[2].b = -1;
  EXPECT_NE(refusal(), "");
}

TEST_F(GivenOp, ReadsInputsThatThereAre) {
  instrs[0].a = 1;
  EXPECT_EQ(refusal(), "pointwise: instruction 0 reads input 1 of 1");
}

TEST_F(GivenOp, HasKnownFunctionsAndTypes) {
  instrs[2].dtype = 99;
  EXPECT_EQ(refusal(), "pointwise: instruction 2 (mul) has the unknown dtype 99");
  instrs[2].fn = 12345;
  EXPECT_EQ(refusal(), "unknown scalar function 12345");
}

TEST_F(GivenOp, StoresRegistersThatThereAre) {
  output = 3;
  EXPECT_EQ(refusal(), "pointwise: output 0 is register 3 of 3");
  expr.n_outputs = 0;
  EXPECT_EQ(refusal(), "pointwise: it has no instruction or no output");
  expr.n_instrs = -1;
  EXPECT_THAT(refusal(), testing::HasSubstr("it has -1 instructions"));
}

TEST_F(GivenOp, HasListsWhereItCountsThem) {
  desc.in = nullptr;
  EXPECT_EQ(refusal(), "pointwise: it has 1 inputs, but their list is NULL");
  desc.in = &x, desc.n_attrs = -1;
  EXPECT_THAT(refusal(), testing::HasSubstr("it has -1 attributes"));
  desc.n_attrs = 1, dims.ints = nullptr;
  EXPECT_EQ(refusal(), "dims: it has 1 integers, but their list is NULL");
  dims = orr::text_attr("fn", nullptr);
  EXPECT_EQ(refusal(), "attribute 'fn' is a text, but its `text` is NULL");
  dims.name = nullptr;
  EXPECT_EQ(refusal(), "pointwise: attribute 0 has no name");
  desc.kind = nullptr;
  EXPECT_EQ(refusal(), "an op has no kind: its `kind` is NULL");
}

std::string told(orr_status* status) {
  try {
    check(status);
    return "";
  } catch (const Error& e) {
    return e.what();
  }
}

TEST_F(GivenOp, HooksHaveFunctionsAndAxesNames) {
  const orr_gradient_hook exchange{sizeof exchange, nullptr, nullptr, nullptr};
  EXPECT_EQ(told(edit_table.exchange(&handle, "a", &exchange)), "the hook's `exchange` is NULL");
  const orr_program_hook round{sizeof round, nullptr, nullptr, nullptr};
  EXPECT_EQ(told(edit_table.every(&handle, 1, 1, &round)), "the hook's `write` is NULL");
  const orr_complete_hook complete{sizeof complete, 0, nullptr, nullptr, nullptr, nullptr};
  EXPECT_EQ(told(edit_table.complete(&handle, &complete)), "the hook's `complete` is NULL");
  EXPECT_EQ(told(edit_table.axis(&handle, nullptr, 0)), "an axis has no name");
  EXPECT_EQ(told(edit_table.place(&handle, x, nullptr, 0)), "the name of an axis is NULL");
}

TEST_F(GivenOp, ReducesInAKnownWay) {
  try {
    p.add1("all_reduce", {x}, {{"axis", "a"}, {"fn", "median"}});
    FAIL() << "it is taken";
  } catch (const std::exception& e) {
    EXPECT_THAT(e.what(), testing::HasSubstr("fn 'median' is none of sum, min, max"));
  }
}

}  // namespace
}  // namespace program_test
