// SPDX-License-Identifier: Apache-2.0
//
// Schedules of a pipeline against their papers' formulas, and the stack of tree nodes against the
// definition of the tree.
#include "partition/timetable.h"

#include <gtest/gtest.h>

#include <orrery/ops.h>

#include <map>

#include "base/error.h"
#include "edit/edit.h"
#include "partition/stage.h"
#include "program/build.h"

namespace orrery {
namespace {

struct Case {
  const char* schedule;
  int ranks, chunks, microbatches;
};

// Time that a rank spends waiting, the least and the most of all.
struct Bubble {
  double least = 1e300, most = 0, makespan = 0;
};

std::vector<std::vector<Action>> tables(const Case& c) {
  StrategyUse use{"pipeline", {{"schedule", std::string(c.schedule)}}, "test"};
  if (c.chunks > 1) use.options["chunks"] = int64_t{c.chunks};
  std::vector<int> chunk_at;
  for (int k = 0; k < c.ranks * c.chunks; ++k) chunk_at.push_back(k % c.ranks);
  return tables_of(use, chunk_at, c.microbatches);
}

Bubble bubble(const Case& c) {
  auto all = tables(c);
  auto spans = simulate(all);
  Bubble b;
  for (auto& [action, span] : spans) b.makespan = std::max(b.makespan, span.end);
  for (auto& table : all) {
    double busy = 0;
    for (const Action& action : table) busy += spans.at(action).end - spans.at(action).begin;
    b.least = std::min(b.least, b.makespan - busy), b.most = std::max(b.most, b.makespan - busy);
  }
  return b;
}

// With forward 1 and backward 2: p - 1 times both for gpipe and 1f1b, a v-th of that with v chunks
// of a v-th of the work each (whose actions count 1 and 2 as well, so the idle time is equal); p -
// 1 once, where the weight part fills the rest, for zb1; for zbv nothing but the first microbatch's
// way down.
TEST(Schedule, BubblesAreThoseOfThePapers) {
  for (int p : {2, 3, 4, 8})
    for (int m : {p, 2 * p, 4 * p}) {
      EXPECT_EQ(bubble({"gpipe", p, 1, m}).most, 3.0 * (p - 1)) << p << " ranks, " << m;
      EXPECT_EQ(bubble({"1f1b", p, 1, m}).most, 3.0 * (p - 1)) << p << " ranks, " << m;
      for (int v : {2, 3}) {
        EXPECT_EQ(bubble({"interleaved", p, v, m}).most, 3.0 * (p - 1))
            << p << " ranks, " << m << ", chunks " << v;
        EXPECT_EQ(bubble({"looped", p, v, m}).most, 3.0 * (p - 1))
            << p << " ranks, " << m << ", chunks " << v;
      }
      EXPECT_EQ(bubble({"zb1", p, 1, m}).most, 1.0 * (p - 1)) << p << " ranks, " << m;
      EXPECT_EQ(bubble({"zbv", p, 2, m}).makespan, 6.0 * m + p - 1) << p << " ranks, " << m;
    }
}

// At most as many microbatches alive as the papers say, in chunks of a rank.
int most_alive(const std::vector<Action>& table) {
  bool split = false;
  for (const Action& c : table) split |= c.segment == Segment::weight;
  int alive = 0, most = 0;
  for (const Action& c : table) {
    alive += c.segment == Segment::forward                                ? 1
             : c.segment == (split ? Segment::weight : Segment::backward) ? -1
                                                                          : 0;
    most = std::max(most, alive);
  }
  return most;
}

TEST(Schedule, ActivationsAliveAreThoseOfThePapers) {
  const int p = 4, m = 12;
  for (int r = 0; r < p; ++r) {
    auto at = [&](const char* s, int v) {
      return most_alive(tables({s, p, v, m})[static_cast<size_t>(r)]);
    };
    EXPECT_EQ(at("gpipe", 1), m);
    EXPECT_EQ(at("1f1b", 1), p - r);
    EXPECT_LE(at("zb1", 1), p + 1);
    EXPECT_EQ(at("interleaved", 2), std::min(2 * m, 2 * (p - 1 - r) + p + 1));
    EXPECT_LE(at("zbv", 2), 2 * p);
  }
}

TEST(Schedule, RefusesOneThatWaitsForItself) {
  auto all = tables({"1f1b", 2, 1, 4});
  std::swap(all[1][0], all[1][1]);  // backward before forward
  EXPECT_THROW(simulate(all), Error);
}

// What the script returns replaces the plugin's order.
TEST(Schedule, TakesTheScriptsOrder) {
  StrategyUse use{"pipeline", {}, "test", [](int stage, int, int) {
                    return stage ? std::vector<std::string>{"F0", "B0", "F1", "B1"}
                                 : std::vector<std::string>{"F0", "F1", "B0", "B1"};
                  }};
  auto all = tables_of(use, {0, 1}, 2);
  EXPECT_EQ(all[0][1], (Action{Segment::forward, 0, 1}));
  EXPECT_EQ(all[1][1], (Action{Segment::backward, 1, 0}));
  use.order = [](int, int, int) { return std::vector<std::string>{"G0"}; };
  EXPECT_THROW(tables_of(use, {0, 1}, 2), Error);
  use.order = [](int, int, int) { return std::vector<std::string>{"F0:1"}; };
  EXPECT_THROW(tables_of(use, {0, 1}, 2), Error);
}

TEST(Schedule, RefusesOneThatLeavesACellOut) {
  auto all = tables({"1f1b", 2, 1, 4});
  all[0].pop_back();
  EXPECT_THROW(simulate(all), Error);
}

// The chunks of modules a, b and c, of which a multiplies so many times.
std::vector<int32_t> chunks_of_modules(int products, ChunkModules& cut) {
  Program p;
  ValueId y = p.batch_input("x", {ORR_F32, {4, 8}});
  for (const char* module : {"net.a", "net.b", "net.c"}) {
    p.set_site({module, "model.lua:3"});
    const ValueId w = p.input(module, {ORR_F32, {8, 8}});
    for (int i = 0; i < (module == std::string("net.a") ? products : 2); ++i)
      y = build::matmul(p, y, w);
  }
  balance_stages(p, 2, cut);
  std::map<std::string, int32_t> found;
  for (const Op& op : p.ops()) found[op.site.region] = op.stage;
  return {found["net.a"], found["net.b"], found["net.c"]};
}

TEST(Stages, StayWhereAnEarlierProgramHasThem) {
  ChunkModules cut, other;
  EXPECT_EQ(chunks_of_modules(1, cut), (std::vector<int32_t>{0, 0, 1}));
  EXPECT_EQ(chunks_of_modules(5, cut), (std::vector<int32_t>{0, 0, 1}));
  EXPECT_EQ(chunks_of_modules(5, other), (std::vector<int32_t>{0, 1, 1}));
}

TEST(NodeStack, LeavesTheMaximalNodes) {
  for (int64_t total = 1; total <= 20; ++total)
    for (int64_t first = 0; first < total; ++first)
      for (int64_t last = first + 1; last <= total; ++last) {
        NodeStack stack(first, last, total);
        int64_t height = 0, merges = 0;
        for (size_t s = 0; s < stack.depth.size(); ++s) {
          EXPECT_EQ(stack.depth[s], height);
          merges += stack.merges[s], height += 1 - stack.merges[s];
        }
        EXPECT_EQ(height, orr_tree_nodes(first, last, total))
            << first << " to " << last << " of " << total;
      }
}

}  // namespace
}  // namespace orrery
