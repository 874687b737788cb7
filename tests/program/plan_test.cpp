// SPDX-License-Identifier: Apache-2.0
//
// The verifier catches planted faults; memory plans never give living tensors the same bytes.
#include <gtest/gtest.h>

#include <random>

#include "base/error.h"
#include "edit/edit.h"
#include "lower/lower.h"
#include "program/build.h"
#include "program/train.h"
#include "stack.h"

namespace program_test {
namespace {

using namespace orrery;

std::shared_ptr<State> param(const char* name, const Dims& dims) {
  auto s = std::make_shared<State>();
  s->name = name, s->type = {ORR_F32, dims};
  return s;
}

// Two layers, momentum-free descent: rank 0 of two with four microbatches.
RankPlan make_plan() {
  Program p;
  auto w1 = param("w1", {3, 5}), w2 = param("w2", {5, 2});
  ValueId x = p.batch_input("x", {ORR_F32, {8, 3}});
  ValueId hidden = p.pointwise(ORR_FN_TANH, {build::matmul(p, x, p.state_value(w1))});
  ValueId y = build::matmul(p, hidden, p.state_value(w2));
  TrainParts parts;
  parts.update = [](Program& q, const std::shared_ptr<State>&, ValueId value, ValueId gradient) {
    return q.pointwise(ORR_FN_SUB,
                       {value, q.pointwise(ORR_FN_MUL, {gradient, Operand::number(0.1)})});
  };
  build_training(p, build::mean(p, p.pointwise(ORR_FN_MUL, {y, y}), {}, false), {w1, w2}, parts);
  Mesh mesh = applied(p, {shared_batch("model.lua:1", 32)}, 2);
  return lower({&p, &mesh, 4, 0, {"reference"}});
}

// Of storages with one life each.
bool apart(const Storage& x, const Storage& y) {
  return x.alive[0].second < y.alive[0].first || y.alive[0].second < x.alive[0].first;
}

std::string fault(const RankPlan& plan) {
  try {
    verify(plan);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

std::vector<size_t> steps(const RankPlan& plan, Step::Kind kind) {
  std::vector<size_t> found;
  for (size_t i = 0; i < plan.schedule.size(); ++i)
    if (plan.schedule[i].kind == kind) found.push_back(i);
  return found;
}

class VerifyTest : public ::testing::Test {
 protected:
  RankPlan plan = make_plan();
  void SetUp() override {
    ASSERT_GT(plan.buckets(), 0);
    ASSERT_EQ(fault(plan), "");
  }
  auto at(size_t step) { return plan.schedule.begin() + static_cast<long>(step); }
};

TEST_F(VerifyTest, CatchesAMissingWait) {
  plan.schedule.erase(at(steps(plan, Step::wait)[0]));
  EXPECT_NE(fault(plan), "");
}

TEST_F(VerifyTest, CatchesAMissingPost) {
  plan.schedule.erase(at(steps(plan, Step::post)[0]));
  EXPECT_NE(fault(plan).find("before it is posted"), std::string::npos);
}

TEST_F(VerifyTest, CatchesASecondPost) {
  size_t post = steps(plan, Step::post)[0];
  plan.schedule.insert(at(post), plan.schedule[post]);
  EXPECT_NE(fault(plan).find("twice"), std::string::npos);
}

TEST_F(VerifyTest, CatchesABucketSentBeforeItIsFull) {
  size_t post = steps(plan, Step::post)[0];
  ASSERT_GT(post, 0u);
  std::swap(plan.schedule[post], plan.schedule[post - 1]);
  EXPECT_NE(fault(plan), "");
}

// Whoever reads what the launch right before it made must not come first.
TEST_F(VerifyTest, CatchesLaunchesInTheWrongOrder) {
  int swaps = 0;
  for (size_t i = 0; i + 1 < plan.schedule.size(); ++i) {
    const Step &a = plan.schedule[i], &b = plan.schedule[i + 1];
    if (a.kind != Step::launch || b.kind != Step::launch) continue;
    const Launch &maker = plan.launches[static_cast<size_t>(a.index)],
                 &user = plan.launches[static_cast<size_t>(b.index)];
    bool reads = false;
    for (const Place& out : maker.out_at)
      for (const Place& in : user.in_at)
        reads = reads ||
                (in.storage == out.storage && plan.storage(in.storage).region == Region::arena &&
                 plan.storage(in.storage).alive.front().first == static_cast<int>(i));
    if (!reads) continue;
    RankPlan swapped = plan;
    std::swap(swapped.schedule[i], swapped.schedule[i + 1]);
    EXPECT_NE(fault(swapped).find("reads what nobody wrote"), std::string::npos) << "step " << i;
    ++swaps;
  }
  EXPECT_GT(swaps, 2);
}

TEST_F(VerifyTest, CatchesOverlappingOffsets) {
  int pairs = 0;
  for (size_t a = 0; a < plan.storages.size(); ++a)
    for (size_t b = a + 1; b < plan.storages.size(); ++b) {
      const Storage &x = plan.storages[a], &y = plan.storages[b];
      bool both = x.region == Region::arena && y.region == Region::arena && x.bytes && y.bytes;
      if (!both || x.alive.empty() || y.alive.empty() || apart(x, y)) continue;
      RankPlan moved = plan;
      moved.storages[b].offset = x.offset;
      EXPECT_NE(fault(moved).find("same bytes"), std::string::npos);
      ++pairs;
    }
  EXPECT_GT(pairs, 3);
}

uint64_t aligned(uint64_t n) { return (n + 63) / 64 * 64; }

// A chain of launches over storages of random size and life.
RankPlan random_plan(uint32_t seed) {
  std::mt19937 random(seed);
  auto pick = [&](int n) { return std::uniform_int_distribution<int>(0, n - 1)(random); };
  RankPlan plan;
  int n = 2 + pick(60);
  for (int i = 0; i < n; ++i) {
    Storage s;
    s.bytes = static_cast<uint64_t>(1 + pick(pick(4) ? 300 : 20000));
    s.category = "activation";
    plan.storages.push_back(s);
    Launch l;
    l.out_at.push_back({i, 0, {}});
    for (int k = pick(4); k > 0 && i > 0; --k) l.in_at.push_back({pick(i), 0, {}});
    plan.launches.push_back(l);
    plan.schedule.push_back({Step::launch, Segment::forward, i});
  }
  plan_memory(plan);
  return plan;
}

TEST(Memory, NeverSharesLivingBytesAndKnowsThePeak) {
  double waste = 0;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    RankPlan plan = random_plan(seed);
    ASSERT_EQ(fault(plan), "") << "seed " << seed;
    uint64_t peak = 0, need = 0, sum = 0;
    for (size_t step = 0; step < plan.schedule.size(); ++step) {
      uint64_t now = 0;
      for (const Storage& s : plan.storages)
        if (s.alive_at(static_cast<int>(step))) now += aligned(s.bytes);
      need = std::max(need, now);
    }
    for (size_t i = 0; i < plan.storages.size(); ++i) {
      const Storage& a = plan.storages[i];
      EXPECT_EQ(a.offset % 64, 0u);
      peak = std::max(peak, aligned(a.offset + a.bytes)), sum += aligned(a.bytes);
      for (size_t j = 0; j < i; ++j) {
        const Storage& b = plan.storages[j];
        EXPECT_TRUE(apart(a, b) || a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset)
            << "seed " << seed << ": storages " << i << " and " << j;
      }
    }
    EXPECT_EQ(plan.arena_bytes, peak);
    EXPECT_GE(plan.arena_bytes, need);
    EXPECT_LE(plan.arena_bytes, sum);
    waste += static_cast<double>(plan.arena_bytes) / static_cast<double>(need) / 300;
  }
  EXPECT_LT(waste, 1.1);
}

}  // namespace
}  // namespace program_test
