// SPDX-License-Identifier: Apache-2.0
//
// The largest microbatch that fits, against trying all; what diffs of ops say.
#include <gtest/gtest.h>

#include "base/error.h"
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

uint64_t peak(const Blueprint& b, int64_t microbatches) {
  uint64_t most = 0;
  for (int r = 0; r < b.mesh.world; ++r)
    most = std::max(most, lower({&b.program, &b.mesh, microbatches, r, {"reference"}}).bytes());
  return most;
}

// The fewest microbatches that fit, 0 if none.
int64_t tried(const Blueprint& b, uint64_t limit) {
  for (int64_t n = b.mesh.batch_ranks(); n <= 96; ++n)
    if (peak(b, n) <= limit) return n;
  return 0;
}

int64_t rows(int64_t microbatches) { return (96 + microbatches - 1) / microbatches; }

TEST(PlanFit, FindsWhatTryingAllFinds) {
  for (int ranks : {1, 2}) {
    std::vector<StrategyUse> stack = {one_by_one()};
    if (ranks > 1) stack.insert(stack.begin(), shared_batch(""));
    Blueprint b = make(stack, ranks);
    for (int64_t microbatches : {ranks, 3, 8, 31, 48}) {
      const uint64_t limit = peak(b, microbatches);
      const std::string said = fit_microbatches(b, {"reference"}, limit);
      EXPECT_EQ(rows(b.microbatches), rows(tried(b, limit))) << said;
      EXPECT_LE(peak(b, b.microbatches), limit);
      EXPECT_NE(said.find(fmt::format("microbatches = {})", b.microbatches)), std::string::npos)
          << said;
    }
  }
}

TEST(PlanFit, SaysByHowMuchNothingFits) {
  Blueprint sliced = make({one_by_one()}, 1), whole = make({}, 1);
  for (Blueprint* b : {&sliced, &whole}) {
    try {
      fit_microbatches(*b, {"reference"}, 1000);
      FAIL();
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find("too much"), std::string::npos) << e.what();
      EXPECT_EQ(std::string(e.what()).find("one after another") == std::string::npos, b == &sliced)
          << e.what();
    }
  }
}

}  // namespace
}  // namespace program_test
