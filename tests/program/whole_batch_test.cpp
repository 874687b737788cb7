// SPDX-License-Identifier: Apache-2.0
//
// What a step makes of the whole batch: states that the forward pass updates, results, gradients of
// what samples share. Figures by hand, and the same bits on 1 to 4 ranks.
#include "whole_batch.h"

#include <cmath>

#include "run/run.h"

namespace program_test {
namespace {

// sum of (1 * 0.25 + x * 0.25) over four samples.
TEST_F(WholeBatch, ReachesAStateUpdatedInForward) {
  ValueId x = counting(4, 3), stat = state("stat", {3}, 1);
  p.update(stat, sum(plus(times(stat, 0.25), times(x, 0.25)), {0}));
  train(mean(x));
  for (int64_t m : {1, 2, 3, 4}) EXPECT_EQ(after("stat", m), (Values{5.5, 6.5, 7.5})) << m;
}

TEST_F(WholeBatch, ReachesARunningAverage) {
  ValueId x = counting(4, 3), stat = state("stat", {3}, 8), average = state("average", {3}, 4),
          square = state("square", {}, 1);
  p.update(stat, plus(times(stat, 0.5), times(sum(x, {0}), 0.25)));
  p.update(average, mean(x, {0}));
  ValueId m = mean(x);
  p.update(square, p.pointwise(ORR_FN_SUB, {mean(p.pointwise(ORR_FN_MUL, {x, x})),
                                            p.pointwise(ORR_FN_MUL, {m, m})}));
  train(mean(x));
  for (int64_t n : {1, 2, 3, 4}) {
    EXPECT_EQ(after("stat", n), (Values{8.5, 9.5, 10.5})) << n;
    EXPECT_EQ(after("average", n), (Values{4.5, 5.5, 6.5})) << n;
    EXPECT_NEAR(after("square", n)[0], 143.0 / 12, 1e-5) << n;
  }
}

// Five samples do not fill microbatches of two: what fills them up is no sample.
TEST_F(WholeBatch, CountsSamplesAlone) {
  ValueId x = counting(5, 2), one = plus(times(x, 0), Operand::number(1));
  ValueId count = state("count", {}, 0), square = state("square", {}, 0),
          gram = state("gram", {2, 2}, 0), tokens = state("tokens", {}, 0);
  p.update(count, sum(one));
  p.update(square, build::reduce(p, "sumsq", one, {}, false));
  p.update(gram, build::matmul(p, one, one, true, false));
  p.update(tokens, sum(build::reshape(p, one, {10})));
  train(mean(x));
  for (int64_t m : {1, 2, 3, 4, 5}) {
    EXPECT_EQ(after("count", m), Values{10}) << m;
    EXPECT_EQ(after("square", m), Values{10}) << m;
    EXPECT_EQ(after("gram", m), (Values{5, 5, 5, 5})) << m;
    EXPECT_EQ(after("tokens", m), Values{10}) << m;
  }
}

// v is used by samples and in a penalty: each part of its gradient is divided by its own weight.
TEST_F(WholeBatch, DividesNoPenaltyByTheSamplesWeight) {
  ValueId x = counting(4, 1), w = state("w", {}, 3, Role::param);
  ValueId v = p.pointwise(ORR_FN_MUL, {w, w});
  train(plus(mean(p.pointwise(ORR_FN_MUL, {x, v})), times(v, 0.5)));
  for (int64_t m : {1, 2, 3, 4}) EXPECT_EQ(after("w", m), Values{3 - 6 * (1.5 + 0.5)}) << m;
}

// What one sample shares with no other is still shared: bias [1, 2] with a batch of one.
TEST_F(WholeBatch, OfOneSampleHasGradients) {
  fields["x"] = {1, 2, 3, 4, 5, 6};
  ValueId x = p.batch_input("x", {ORR_F32, {1, 3, 2}});
  ValueId position = state("position", {1, 3, 2}, 0, Role::param),
          w = state("w", {2, 4}, 1, Role::param), whole = state("whole", {1}, 1, Role::param);
  ValueId y = build::matmul(p, plus(x, position), w);
  train(mean(p.pointwise(ORR_FN_MUL, {y, build::broadcast_like(p, whole, y)})));
  near(after("w", 1), {.25, .25, .25, .25, 0, 0, 0, 0});
  near(after("position", 1), Values(6, -1.0 / 3));
  near(after("whole", 1), {1 - 7.0});
}

// The labels' dims may be one with the batch, as the logits' are.
TEST_F(WholeBatch, MayBeOneDimWithTheTokens) {
  fields["y"] = {0, 1, 2, 1, 0, 2, 2, 2, 0, 1};
  ValueId x = counting(5, 6), y = p.batch_input("y", {ORR_I64, {5, 2}});
  ValueId logits = times(build::reshape(p, x, {5, 2, 3}), 0.125);
  ValueId apart = state("apart", {}, 0), merged = state("merged", {}, 0);
  p.update(apart, build::cross_entropy(p, logits, y, kNone, std::nullopt));
  p.update(merged, build::cross_entropy(p, build::reshape(p, logits, {-1, 3}),
                                        build::reshape(p, y, {-1}), kNone, std::nullopt));
  train(mean(x));
  for (int64_t m : {1, 2, 3, 4, 5}) EXPECT_EQ(after("merged", m), after("apart", m)) << m;
}

// y[b,e,t,:] = x[b,1,t,:] w[e]: every sample by every matrix.
TEST_F(WholeBatch, MeetsMatricesThatItsSamplesShare) {
  ValueId x = counting(4, 6), w = state("w", {2, 3, 1}, 1, Role::param);
  ValueId y = build::matmul(p, build::reshape(p, x, {4, 1, 2, 3}), w);
  EXPECT_EQ(p.type(y).dims, (Dims{4, 2, 2, 1}));
  EXPECT_EQ(p.value(y).batch_dim(), 0);
  ValueId scale =
      build::reshape(p, plus(build::iota(p, 2, ORR_F32), Operand::number(1)), {2, 1, 1});
  train(sum(mean(p.pointwise(ORR_FN_MUL, {y, scale}), {0})));
  // Matrix e gets (e + 1) times the mean over samples of the sum over their two rows.
  for (int64_t m : {1, 2, 3, 4})
    EXPECT_EQ(after("w", m), (Values{1 - 21, 1 - 23, 1 - 25, 1 - 42, 1 - 46, 1 - 50})) << m;
}

// Matrices [E, D, F] with samples in the second dim of [E, B, D].
TEST_F(WholeBatch, MayLieBehindTheMatrices) {
  ValueId x = counting(4, 6), w = state("w", {2, 3, 1}, 1, Role::param);
  ValueId by_matrix = build::transpose(p, build::reshape(p, x, {4, 2, 3}), {1, 0, 2});
  train(sum(mean(build::matmul(p, by_matrix, w), {1})));
  for (int64_t m : {1, 2, 3, 4})
    EXPECT_EQ(after("w", m), (Values{-8, -9, -10, -11, -12, -13})) << m;
}

// -- results --------------------------------------------------------------------------------------

class Results : public ::testing::Test {
 protected:
  std::map<std::string, double> results(
      std::function<Outputs(Program&, ValueId x, ValueId loss)> outputs) {
    HostTensor data = HostTensor::make({ORR_F32, {4}});
    for (int i = 0; i < 4; ++i) data.data<float>()[i] = static_cast<float>(i + 1);
    RunSpec spec;
    spec.loss = [=](Program& p, const Fields& f) {
      ValueId loss = build::mean(p, f.at("x"), {}, false);
      return std::pair{loss, outputs(p, f.at("x"), loss)};
    };
    spec.local = true, spec.line = "model.lua:9", spec.scalars = [](int64_t) {
      return std::map<std::string, double>{{"lr", 0.5}};
    };
    auto run = Run::make(spec);
    auto result = run->step({{"x", {data.type, [data](int64_t begin, int64_t end, std::byte* to) {
                                      std::memcpy(to, data.data<float>() + begin,
                                                  static_cast<size_t>(end - begin) * 4);
                                    }}}});
    std::map<std::string, double> found;
    for (const std::string& name : result->names()) found[name] = result->get(name);
    return found;
  }
};

TEST_F(Results, MayBeSumsThatNothingElseReads) {
  auto found = results([](Program& p, ValueId x, ValueId) {
    ValueId sum = build::reduce(p, "sum", x, {}, false);
    return Outputs{
        {"sum", sum},
        {"again", sum},
        {"sumsq", build::reduce(p, "sumsq", x, {}, false)},
        {"count",
         build::reduce(p, "sum", p.pointwise(ORR_FN_GT, {x, Operand::number(1)}), {}, false)},
        {"wide", build::reduce(p, "sum", p.cast(x, ORR_F64), {}, false)}};
  });
  EXPECT_EQ(found["sum"], 10);
  EXPECT_EQ(found["again"], 10);
  EXPECT_EQ(found["sumsq"], 30);
  EXPECT_EQ(found["count"], 3);
  EXPECT_EQ(found["wide"], 10);
}

TEST_F(Results, MayBeTheLossANumberOrAnInput) {
  auto found = results([](Program& p, ValueId, ValueId loss) {
    ValueId one = p.constant(1, ORR_F32);
    return Outputs{{"same", loss},
                   {"one", one},
                   {"uno", one},
                   {"lr", p.scalar_input("lr", ORR_F32)},
                   {"seed", p.seed()}};
  });
  EXPECT_EQ(found["same"], 2.5);
  EXPECT_EQ(found["one"], 1);
  EXPECT_EQ(found["uno"], 1);
  EXPECT_EQ(found["lr"], 0.5);
  EXPECT_EQ(found["seed"], 1);
}

// The value of the step, not the one that it leaves.
TEST_F(Results, MayBeAStateOrAViewOfOne) {
  auto found = results([](Program& p, ValueId x, ValueId) {
    auto scalar = std::make_shared<State>(), list = std::make_shared<State>();
    scalar->name = "scalar", scalar->type = {ORR_F32, {}}, scalar->role = Role::state;
    scalar->initial = Initial::of_constant(7);
    list->name = "list", list->type = {ORR_F32, {2}}, list->role = Role::state;
    list->initial = Initial::of_constant(3);
    ValueId s = p.state_value(scalar), l = p.state_value(list),
            sum = build::reduce(p, "sum", x, {}, false);
    p.update(s, sum);
    p.update(l, build::broadcast(p, sum, {2}));
    return Outputs{{"old", s},
                   {"older", s},
                   {"second", build::reshape(p, build::slice(p, l, 0, 1, 2), {})},
                   {"new", sum}};
  });
  EXPECT_EQ(found["old"], 7);
  EXPECT_EQ(found["older"], 7);
  EXPECT_EQ(found["second"], 3);
  EXPECT_EQ(found["new"], 10);
}

}  // namespace
}  // namespace program_test
