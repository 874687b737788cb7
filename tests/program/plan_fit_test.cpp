// SPDX-License-Identifier: Apache-2.0
//
// What the search for the largest microbatch is told, against trying all.
#include <gtest/gtest.h>

#include "edit/edit.h"
#include "lower/lower.h"
#include "plan/fit.h"
#include "program/build.h"
#include "program/train.h"
#include "stack.h"

namespace program_test {
namespace {

using namespace orrery;

std::shared_ptr<State> weight(const std::string& name, const Dims& dims) {
  auto s = std::make_shared<State>();
  s->name = name, s->type = {ORR_F32, dims};
  return s;
}

// Activations weigh more than parameters: 96 samples of width 256 beside 4 x 256 numbers.
Blueprint make(const std::vector<StrategyUse>& stack, int ranks) {
  Blueprint b;
  Program& p = b.program;
  ValueId x = p.batch_input("x", {ORR_F32, {96, 4}});
  std::vector<std::shared_ptr<State>> params = {weight("w1", {4, 256}), weight("w2", {256, 4})};
  ValueId y = p.pointwise(ORR_FN_TANH, {build::matmul(p, x, p.state_value(params[0]))});
  y = build::matmul(p, y, p.state_value(params[1]));
  TrainParts parts;
  parts.update = [](Program& q, const std::shared_ptr<State>&, ValueId value, ValueId gradient) {
    return q.pointwise(ORR_FN_SUB, {value, gradient});
  };
  build_training(p, build::mean(p, p.pointwise(ORR_FN_MUL, {y, y}), {}, false), params, parts);
  b.mesh = applied(p, stack, ranks);
  b.microbatches = 96;
  return b;
}

int64_t rows(int64_t microbatches) { return (96 + microbatches - 1) / microbatches; }

TEST(PlanFit, CountsAreTheFewestForEachSizeOfAMicrobatch) {
  for (int ranks : {1, 2}) {
    std::vector<StrategyUse> stack = {one_by_one()};
    if (ranks > 1) stack.insert(stack.begin(), shared_batch(""));
    const Json facts = counts_json(make(stack, ranks));
    EXPECT_EQ(facts["samples"], 96);
    EXPECT_TRUE(facts["one_by_one"]);
    std::map<int64_t, int64_t, std::greater<>> fewest;  // by rows
    for (int64_t n = 96; n >= ranks; --n) fewest[rows(n)] = n;
    std::vector<int64_t> expected;
    for (auto& [size, n] : fewest) expected.push_back(n);
    EXPECT_EQ(facts["counts"].get<std::vector<int64_t>>(), expected);
  }
}

TEST(PlanFit, WithoutSlicesThereIsOneCount) {
  const Json facts = counts_json(make({}, 1));
  EXPECT_FALSE(facts["one_by_one"]);
  EXPECT_EQ(facts["counts"].size(), 1u);
}

TEST(PlanFit, ThePeakIsThatOfTheRankThatNeedsMost) {
  Blueprint b = make({shared_batch(""), one_by_one()}, 2);
  for (int64_t microbatches : {2, 3, 31}) {
    b.microbatches = microbatches;
    const Json found = peak_json(b, {"reference"});
    const auto of = [&](int rank) {
      return lower({&b.program, &b.mesh, microbatches, rank, {"reference"}}).bytes();
    };
    EXPECT_EQ(found["bytes"], std::max(of(0), of(1)));
    EXPECT_EQ(found["bytes"], of(found["rank"]));
  }
}

}  // namespace
}  // namespace program_test
