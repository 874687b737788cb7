// SPDX-License-Identifier: Apache-2.0
//
// Recomputation changes the memory of a step and nothing else.
#include <gtest/gtest.h>

#include "base/error.h"
#include "edit/edit.h"
#include "gpt.h"
#include "lower/lower.h"
#include "run/run.h"
#include "stack.h"

namespace program_test {
namespace {

using namespace orrery;

struct Trained {
  std::vector<double> losses, norms;
  std::vector<Values> states;
  uint64_t arena = 0;
};

Trained train(const std::vector<StrategyUse>& stack) {
  GptShape shape;
  Gpt gpt = make_gpt(shape);
  Mesh mesh = applied(gpt.program, stack, 1);
  Trained t;
  t.arena = lower({&gpt.program, &mesh, 1, 0, {"cpu"}}).arena_bytes;
  materialize(gpt.states());
  Machine machine(gpt.program, {"cpu"}, {1, 0, 1, shape.batch});
  for (int step = 1; step <= 3; ++step) {
    Named out = machine.run(gpt_batch(shape, step));
    t.losses.push_back(out["loss"][0]), t.norms.push_back(out["grad_norm"][0]);
  }
  for (auto& s : gpt.states()) {
    HostTensor value = read_state(*s);
    t.states.emplace_back(value.data<float>(), value.data<float>() + value.type.elements());
  }
  return t;
}

std::vector<StrategyUse> use(const char* mode, const char* path) {
  return {{"recompute", {{"mode", std::string(mode)}, {"path", std::string(path)}}, "gpt.lua:5"}};
}

class Recompute : public ::testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(Recompute, KeepsTheBitsAndLessMemory) {
  Trained plain = train({}), again = train(use(GetParam().first, GetParam().second));
  EXPECT_EQ(again.losses, plain.losses);
  EXPECT_EQ(again.norms, plain.norms);
  EXPECT_EQ(again.states, plain.states);
  EXPECT_LT(again.arena, plain.arena);
}

INSTANTIATE_TEST_SUITE_P(Ways, Recompute,
                         ::testing::Values(std::pair{"full", ""}, std::pair{"selective", ""},
                                           std::pair{"full", "blocks.*.mlp, norm"},
                                           std::pair{"full", "blocks.1-1"}));

TEST(RecomputeOrder, FullKeepsLessThanSelective) {
  EXPECT_LT(train(use("full", "")).arena, train(use("selective", "")).arena);
}

// Every clone stands before its first reader, reads what is known by then, and names its original.
TEST(RecomputeOrder, KeepsTheProgramInOrder) {
  Gpt gpt = make_gpt();
  size_t before = gpt.program.ops().size();
  applied(gpt.program, use("full", ""), 1);
  const Program& p = gpt.program;
  EXPECT_GT(p.ops().size(), before + 20);
  for (size_t i = 0; i < p.ops().size(); ++i) {
    const Op& op = p.ops()[i];
    for (ValueId v : op.in) EXPECT_LT(p.value(v).producer, static_cast<OpId>(i));
    for (ValueId v : op.out) EXPECT_EQ(p.value(v).producer, static_cast<OpId>(i));
    if (op.twin == kNone) continue;
    ASSERT_LT(op.twin, static_cast<OpId>(i));
    EXPECT_EQ(p.ops()[static_cast<size_t>(op.twin)].phase, Phase::forward);
    EXPECT_EQ(p.ops()[static_cast<size_t>(op.twin)].site.region, op.site.region);
  }
}

std::string refusal(const std::vector<StrategyUse>& stack) {
  Gpt gpt = make_gpt();
  try {
    applied(gpt.program, stack, 1);
  } catch (const Error& e) {
    return e.what();
  }
  return "accepted";
}

TEST(RecomputeOptions, AreChecked) {
  EXPECT_EQ(refusal(use("full", "block.*")),
            "gpt.lua:5: strategy.recompute: path 'block.*' matches no module; there are: blocks, "
            "blocks.1, "
            "blocks.2, drop, head, norm, pos, tok");
  EXPECT_EQ(refusal(use("half", "")),
            "gpt.lua:5: strategy.recompute: there is no mode 'half': give full or selective");
  auto twice = use("full", "");
  twice.push_back(twice[0]);
  EXPECT_NE(refusal(twice).find("cannot join a stack"), std::string::npos);
}

}  // namespace
}  // namespace program_test
