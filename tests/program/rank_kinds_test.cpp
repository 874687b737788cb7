// SPDX-License-Identifier: Apache-2.0
//
// A plan that serves several kinds of ranks, against plans of their own.
#include <gtest/gtest.h>

#include "edit/edit.h"
#include "gpt.h"
#include "lower/lower.h"
#include "plan/planned.h"
#include "plan/rank_kinds.h"
#include "stack.h"

namespace program_test {
namespace {

using namespace orrery;

// Four stages of four shares each; the outer shares of the vocabulary have other shapes.
Blueprint stages_of_shares() {
  GptShape shape;
  shape.layers = 4, shape.vocab = 16, shape.dropout = 0, shape.tied = false;
  Blueprint b;
  b.program = make_gpt(shape).program;
  const std::vector<StrategyUse> stack = {{"pipeline", {{"size", int64_t{4}}}, "model.lua:1"},
                                          {"tensor", {{"size", int64_t{4}}}, "model.lua:2"}};
  b.mesh = applied(b.program, stack, 16);
  b.microbatches = 4;
  return b;
}

void expect_same(const RankPlan& a, const RankPlan& b) {
  EXPECT_EQ(a.rank, b.rank);
  EXPECT_EQ(a.bytes(), b.bytes());
  EXPECT_EQ(a.flops(), b.flops());
  ASSERT_EQ(a.schedule.size(), b.schedule.size());
  for (size_t i = 0; i < a.schedule.size(); ++i) {
    const Step &x = a.schedule[i], &y = b.schedule[i];
    EXPECT_EQ(std::tuple(x.kind, x.segment, x.index, x.chunk, x.microbatch, x.depth),
              std::tuple(y.kind, y.segment, y.index, y.chunk, y.microbatch, y.depth));
  }
  ASSERT_EQ(a.exchanges.size(), b.exchanges.size());
  for (size_t i = 0; i < a.exchanges.size(); ++i) {
    const Exchange &x = a.exchanges[i], &y = b.exchanges[i];
    EXPECT_EQ(std::tie(x.name, x.axis, x.op, x.count, x.tag, x.root_or_peer, x.bytes_sent),
              std::tie(y.name, y.axis, y.op, y.count, y.tag, y.root_or_peer, y.bytes_sent));
  }
}

TEST(RankKinds, OnePlanServesSharesThatDifferAtOtherStages) {
  const Blueprint b = stages_of_shares();
  const RankKinds kinds(b);
  EXPECT_EQ(kinds.alike().size(), 8U);             // outer and inner shares of four stages
  EXPECT_EQ(kinds.planned_together().size(), 6U);  // which differ at the first and the last
  for (const std::vector<size_t>& group : kinds.planned_together()) {
    RankPlan plan = lower(kinds.request(group.front(), {"reference"}));
    for (size_t kind : group) {
      turn_into(plan, kinds.alike()[kind].front());
      expect_same(plan, lower(kinds.request(kind, {"reference"})));
    }
  }
}

Blueprint sharded(int world, std::vector<StrategyUse> stack) {
  GptShape shape;
  shape.batch = 96, shape.layers = 3, shape.vocab = 700, shape.dim = 64, shape.ctx = 4;
  Blueprint b;
  b.program = make_gpt(shape).program;
  b.mesh = applied(b.program, stack, world);
  b.microbatches = 96;
  return b;
}

// Every rank's own plan, against the one that is made for its kind.
void expect_true_kinds(const Blueprint& b, size_t most) {
  const RankKinds kinds(b);
  EXPECT_LE(kinds.alike().size(), most);
  for (const std::vector<size_t>& group : kinds.planned_together()) {
    RankPlan plan = lower(kinds.request(group.front(), {"reference"}));
    for (size_t kind : group)
      for (int rank : kinds.alike()[kind]) {
        SCOPED_TRACE(rank);
        turn_into(plan, rank);
        expect_same(plan, lower({&b.program, &b.mesh, b.microbatches, rank, {"reference"}}));
      }
  }
}

TEST(RankKinds, PiecesOfEqualShapesArePlannedOnce) {
  for (int64_t stage : {1, 2, 3}) {
    SCOPED_TRACE(stage);
    const StrategyUse zero{"zero", {{"stage", stage}}, "model.lua:2"};
    expect_true_kinds(sharded(96, {shared_batch("model.lua:1"), zero}), 60);
    expect_true_kinds(sharded(48, {{"pipeline", {{"size", int64_t{2}}}, "model.lua:1"},
                                   shared_batch("model.lua:1"),
                                   zero}),
                      40);
  }
}

TEST(RankKinds, LargestShardsAloneMakeFewKindsAndNearlyTheSamePlan) {
  const StrategyUse data = shared_batch("model.lua:1"),
                    pipeline{"pipeline", {{"size", int64_t{2}}}, "model.lua:1"};
  for (int64_t stage : {1, 2, 3})
    for (const std::vector<StrategyUse>& before : {std::vector{data}, {pipeline, data}}) {
      SCOPED_TRACE(stage);
      std::vector<StrategyUse> stack = before;
      stack.push_back({"zero", {{"stage", stage}}, "model.lua:2"});
      const Blueprint b = sharded(48, stack);
      EXPECT_LE(RankKinds(b, ShardSizes::largest).alike().size(), before.size());
      EXPECT_GT(RankKinds(b).alike().size(), before.size());
      const orrery::Machine machine = machine_of("");
      const PlannedStep exact = plan_step(b, {"reference"}, machine),
                        sketch = plan_step(b, {"reference"}, machine, ShardSizes::largest);
      EXPECT_NEAR(sketch.seconds / exact.seconds, 1, 0.01);
      EXPECT_NEAR(double(sketch.peak()) / double(exact.peak()), 1, 0.02);
    }
}

TEST(RankKinds, SharesOfASequenceArePlannedOnce) {
  GptShape shape;
  shape.layers = 4, shape.ctx = 16, shape.vocab = 16, shape.tied = false;
  Blueprint b;
  b.program = make_gpt(shape).program;
  b.mesh = applied(b.program,
                   {{"pipeline", {{"size", int64_t{2}}}, "model.lua:1"},
                    {"tensor", {{"size", int64_t{4}}, {"sequence", int64_t{1}}}, "model.lua:2"}},
                   8);
  b.microbatches = 4;
  expect_true_kinds(b, 4);
}

}  // namespace
}  // namespace program_test
