// SPDX-License-Identifier: Apache-2.0
//
// What a program may do with the batch, and how gradients keep their parts apart.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "machine.h"
#include "program/autodiff.h"
#include "program/build.h"
#include "program/state.h"

namespace program_test {
namespace {

using namespace orrery;

class BatchTest : public ::testing::Test {
 protected:
  BatchTest() { p.set_site({"net", "model.lua:3"}); }

  template <class Body>
  std::string error(Body body) {
    try {
      body();
    } catch (const Error& e) {
      return e.what();
    }
    return "accepted";
  }

  ValueId mean(ValueId v) { return build::mean(p, v, {}, false); }
  ValueId pointwise(int32_t fn, const std::vector<Operand>& in) { return p.pointwise(fn, in); }

  Program p;
  ValueId x = p.batch_input("x", {ORR_F32, {6, 3}});
};

// What a mean is made into is as well known as the mean. The gradient of a nonlinear function of it
// needs it complete, unless it does not depend on what is differentiated by.
TEST_F(BatchTest, KnowsWhichLossesNeedCompleteSums) {
  ValueId w = p.input("w", {ORR_F32, {3}}), m = mean(pointwise(ORR_FN_MUL, {x, w}));
  for (int32_t fn : {ORR_FN_EXP, ORR_FN_SQRT, ORR_FN_TANH}) {
    ValueId y = pointwise(fn, {m});
    EXPECT_EQ(p.value(y).batch(), Batch::mean);
    EXPECT_EQ(differentiate(p, y, {w}).needs_sums,
              fmt::format("model.lua:3: net: '{}' makes a nonlinear function of sums over the "
                          "batch here",
                          scalar_fn(fn).name));
  }
  EXPECT_NE(differentiate(p, pointwise(ORR_FN_MUL, {m, m}), {w}).needs_sums, "");
  EXPECT_NE(differentiate(p, pointwise(ORR_FN_DIV, {Operand::number(1), m}), {w}).needs_sums, "");
  ValueId bent = pointwise(ORR_FN_EXP, {mean(x)});
  EXPECT_EQ(differentiate(p, pointwise(ORR_FN_ADD, {m, bent}), {w}).needs_sums, "");
  EXPECT_EQ(differentiate(p, pointwise(ORR_FN_MUL, {m, bent}), {w}).needs_sums, "");
}

TEST_F(BatchTest, TakesSumsAndMultiplesOfMeans) {
  ValueId m = mean(x);
  EXPECT_EQ(error([&] { pointwise(ORR_FN_MUL, {m, Operand::number(2)}); }), "accepted");
  EXPECT_EQ(error([&] { pointwise(ORR_FN_DIV, {m, Operand::number(2)}); }), "accepted");
  EXPECT_EQ(error([&] { pointwise(ORR_FN_ADD, {m, Operand::number(1)}); }), "accepted");
  EXPECT_EQ(error([&] {
              pointwise(ORR_FN_SUB, {mean(pointwise(ORR_FN_MUL, {x, x})), m});
            }),
            "accepted");
}

TEST_F(BatchTest, TakesMeansOfEveryRealType) {
  for (int32_t dtype : {ORR_F64, ORR_BF16})
    EXPECT_EQ(error([&] { p.cast(mean(p.cast(x, dtype)), ORR_F32); }), "accepted")
        << dtype_name(dtype);
}

TEST_F(BatchTest, KnowsTheMultiplesOfASumFromWhatIsMadeOfItsWhole) {
  ValueId sum = build::reduce(p, "sum", x, {}, false), c = p.input("c", {ORR_F32, {}});
  auto batch = [&](ValueId v) { return p.value(v).batch(); };
  for (ValueId v :
       {pointwise(ORR_FN_MUL, {sum, Operand::number(3)}), pointwise(ORR_FN_MUL, {sum, c}),
        pointwise(ORR_FN_ADD, {sum, sum}), pointwise(ORR_FN_NEG, {sum})})
    EXPECT_EQ(batch(v), Batch::partial);
  for (ValueId v :
       {pointwise(ORR_FN_ADD, {sum, Operand::number(1)}), pointwise(ORR_FN_ADD, {sum, c}),
        pointwise(ORR_FN_SUB, {c, sum}), pointwise(ORR_FN_MUL, {sum, sum}),
        pointwise(ORR_FN_TANH, {sum}), pointwise(ORR_FN_ADD, {sum, mean(x)})})
    EXPECT_EQ(batch(v), Batch::mean);
}

TEST_F(BatchTest, TakesALossThatHoldsASum) {
  ValueId w = p.input("w", {ORR_F32, {3}}), y = pointwise(ORR_FN_MUL, {x, w});
  ValueId sum = build::reduce(p, "sum", y, {}, false);
  EXPECT_EQ(differentiate(p, pointwise(ORR_FN_ADD, {mean(y), sum}), {w}).needs_sums, "");
  EXPECT_EQ(differentiate(p, sum, {w}).weight, kNone);  // its gradient is not divided
}

TEST_F(BatchTest, RefusesAStateOfSamples) {
  auto s = std::make_shared<State>();
  s->name = "stat", s->type = {ORR_F32, {6, 3}}, s->role = Role::state;
  EXPECT_EQ(error([&] { p.update(p.state_value(s), x); }),
            "model.lua:3: net: state 'stat' is one for all samples, its new value f32[6,3] has one "
            "for each: reduce it over dim 1, such as with :mean(1)");
}

TEST_F(BatchTest, RefusesTheMaximumOverTheBatch) {
  for (const char* fn : {"max", "min"})
    EXPECT_EQ(error([&] { build::reduce(p, fn, x, {0}, false); }),
              fmt::format("model.lua:3: net: the {} over the batch is known only after all "
                          "microbatches and cannot be used in a model; take that of "
                          "x:all_gather(\"batch\")",
                          fn));
  EXPECT_EQ(error([&] { build::reduce(p, "max", x, {1}, false); }), "accepted");
}

TEST_F(BatchTest, RefusesWhatWorksAcrossSamples) {
  ValueId column = build::transpose(p, x, {1, 0});
  EXPECT_EQ(
      error([&] { build::softmax(p, column); }),
      "model.lua:3: net: softmax: works across the samples of a batch along dim 2 of [3,6], but "
      "every microbatch must be computable alone; read all samples as x:all_gather(\"batch\"), "
      "make what meets one sample, with batch fields of [groups, samples of a group, ...], or keep "
      "earlier samples' values in a buffer");
  EXPECT_NE(error([&] { build::slice(p, x, 0, 0, 3); }).find("works across the samples"),
            std::string::npos);
  EXPECT_NE(error([&] {
              build::concat(p, {x, x}, 0);
            }).find("concat: joins tensors along dim 1"),
            std::string::npos);
  EXPECT_NE(error([&] {
              pointwise(ORR_FN_ADD, {x, p.input("table", {ORR_F32, {6, 1}})});
            }).find("does not depend on the batch but has the batch's extent"),
            std::string::npos);
}

// What is repeated or drawn along the batch's extent; what a script hands in is refused above.
TEST_F(BatchTest, TakesTheSamplesRowsOfWhatOnlyHasTheExtent) {
  for (ValueId rows : {p.constant(1, ORR_F32, {6, 1}), p.random_uniform({ORR_F32, {6, 1}}),
                       build::broadcast(p, p.input("row", {ORR_F32, {1, 3}}), {6, 3}),
                       build::reshape(p, build::iota(p, 6, ORR_F32), {6, 1})}) {
    const ValueId y = pointwise(ORR_FN_ADD, {x, rows});
    EXPECT_EQ(p.value(y).batch(), Batch::sharded);
    EXPECT_EQ(p.value(y).batch_dim(), 0);
    EXPECT_EQ(p.value(rows).batch(), Batch::none);
  }
}

TEST_F(BatchTest, RefusesFieldsOfUnequalLength) {
  EXPECT_EQ(error([&] {
              p.batch_input("y", {ORR_F32, {5}});
            }),
            "model.lua:3: net: batch field 'y' has 5 rows, the others have 6");
}

TEST_F(BatchTest, RefusesALossThatIsNoNumber) {
  EXPECT_NE(error([&] { differentiate(p, x, {}); }).find("the loss must be a real scalar"),
            std::string::npos);
}

// The weights of the second are made of the whole batch's fields, so that backward may begin.
TEST_F(BatchTest, TakesMeansOfDifferentWeights) {
  ValueId w = p.input("w", {ORR_F32, {3, 4}});
  ValueId logits = build::matmul(p, x, w), labels = p.batch_input("y", {ORR_I64, {6}});
  ValueId token = p.batch_input("token", {ORR_F32, {6}});
  ValueId loss = pointwise(
      ORR_FN_ADD, {build::cross_entropy(p, logits, labels, token, std::nullopt), mean(logits)});
  EXPECT_EQ(differentiate(p, loss, {w}).needs_sums, "");
  EXPECT_EQ(std::count_if(p.values().begin(), p.values().end(),
                          [](const Value& v) { return v.role == Role::whole_batch; }),
            1);
  for (const Op& op : p.ops()) EXPECT_NE(op.kind, "batch_sum");
}

TEST_F(BatchTest, MeansOfAnyDtypeHaveTheSameWeights) {
  ValueId w = p.input("w", {ORR_F64, {3}});
  ValueId wide = p.pointwise(ORR_FN_MUL, {p.cast(x, ORR_F64), w});
  ValueId one = mean(wide), other = mean(p.pointwise(ORR_FN_TANH, {wide})), narrow = mean(x);
  ValueId loss =
      p.pointwise(ORR_FN_ADD, {p.pointwise(ORR_FN_ADD, {one, other}), p.cast(narrow, ORR_F64)});
  EXPECT_EQ(error([&] { differentiate(p, loss, {w}); }), "accepted");
}

class GradientTest : public BatchTest {
 protected:
  ValueId w = p.input("w", {ORR_F32, {3, 3}});
  ValueId product(ValueId a) { return build::matmul(p, a, w); }
};

TEST_F(GradientTest, KeepsTheUsesOfAWeightApartInOrder) {
  ValueId loss = mean(product(p.pointwise(ORR_FN_TANH, {product(x)})));
  Differentiated d = differentiate(p, loss, {w});
  ASSERT_EQ(d.parts.size(), 1u);
  ASSERT_EQ(d.parts[0].partial.size(), 2u);
  EXPECT_EQ(d.parts[0].regular, kNone);
  // The first use reads x itself, the second tanh of the first product.
  auto reads = [&](ValueId use) {
    return p.ops()[static_cast<size_t>(p.value(use).producer)].in[0];
  };
  EXPECT_EQ(reads(d.parts[0].partial[0]), x);
  EXPECT_NE(reads(d.parts[0].partial[1]), x);
  for (ValueId use : d.parts[0].partial) EXPECT_EQ(p.value(use).batch(), Batch::partial);
}

TEST_F(GradientTest, KeepsPenaltiesApart) {
  ValueId penalty = build::reduce(p, "sumsq", w, {}, false);
  ValueId loss = p.pointwise(
      ORR_FN_ADD, {mean(product(x)), p.pointwise(ORR_FN_MUL, {penalty, Operand::number(0.5)})});
  Differentiated d = differentiate(p, loss, {w});
  ASSERT_EQ(d.parts[0].partial.size(), 1u);
  ASSERT_NE(d.parts[0].regular, kNone);
  EXPECT_EQ(p.value(d.parts[0].regular).batch(), Batch::none);
  give(p, "regular", d.parts[0].regular);
  Values weights = {1, -2, 3, -4, 5, -6, 7, -8, 9}, rows(18, 0.5);
  EXPECT_EQ(Machine(p, {"reference"}, {1, 0, 1, 6}).run({{"w", weights}, {"x", rows}})["regular"],
            weights);
}

TEST_F(GradientTest, OfAPenaltyAloneHasNoBatch) {
  Differentiated d = differentiate(p, build::reduce(p, "sumsq", w, {}, false), {w});
  EXPECT_TRUE(d.parts[0].partial.empty());
  EXPECT_NE(d.parts[0].regular, kNone);
  EXPECT_EQ(d.weight, kNone);
}

TEST_F(GradientTest, StopsAtStopGradient) {
  ValueId loss = mean(build::matmul(p, x, build::stop_gradient(p, w)));
  Differentiated d = differentiate(p, loss, {w});
  EXPECT_TRUE(d.parts[0].partial.empty());
  EXPECT_EQ(d.parts[0].regular, kNone);
}

TEST(RandomIds, DependOnTheRegionAndItsCallsOnly) {
  Program a, b;
  auto id = [](Program& p, const char* region) {
    p.set_site({region, ""});
    return p.next_rng_id();
  };
  int64_t first = id(a, "net.drop1"), second = id(a, "net.drop1"), other = id(a, "net.drop2");
  EXPECT_EQ(id(b, "net.drop2"), other);
  EXPECT_EQ(id(b, "net.drop1"), first);
  EXPECT_EQ(id(b, "net.drop1"), second);
  EXPECT_EQ((std::set<int64_t>{first, second, other}).size(), 3u);
  // Part of what makes a run repeatable for ever: these may not change.
  EXPECT_EQ(first, 1431377503);
  EXPECT_EQ(second, 1431374764);
}

TEST(Print, SaysWhatAProgramDoes) {
  Program p;
  p.set_site({"net.fc", "model.lua:7"});
  ValueId x = p.batch_input("x", {ORR_F32, {6, 3}}), w = p.input("w", {ORR_F32, {3, 2}});
  ValueId y = p.pointwise(ORR_FN_MAX, {build::matmul(p, x, w), Operand::number(0)});
  ValueId loss = build::mean(p, y, {}, false);
  differentiate(p, loss, {w});
  p.output("loss", loss);
  EXPECT_EQ(to_string(p), R"(%0:f32[6,3]@1 = batch "x"
%1:f32[3,2] = input "w"
%4:f32[6]@1 = batch "$weight"
-- forward
%2:f32[6,2]@1 = matmul %0 %1  # net.fc
%3:f32[6,2]@1 = pointwise %2 {r0=in0 r1=0 r2=maximum(r0,r1) -> r2}  # net.fc
%5:f32[6,1]@1 = reshape %4 dims=[6,1]  # net.fc
%6:f32[6,2]@1 = pointwise %3 %5 {r0=in0 r1=in1 r2=mul(r0,r1) -> r2}  # net.fc
%7:f32[]@sum = reduce %6 begin=0 end=2 fn="sum"  # net.fc
%8:f32[]@sum = pointwise %7 {r0=in0 r1=0.5 r2=mul(r0,r1) -> r2}  # net.fc
%9:f32[]@sum = reduce %4 begin=0 end=1 fn="sum"  # net.fc
%10:f32[]@mean = batch_mean %8 %9  # net.fc
-- backward
%11:f32[] = pointwise dims=[] {r0=1 -> r0}  # net.fc
%12:f32[] = pointwise %11 {r0=in0 r1=0.5 r2=mul(r0,r1) -> r2}  # net.fc
%13:f32[1,1] = reshape %12 dims=[1,1]  # net.fc
%14:f32[6,2]@1 = pointwise %13 dims=[6,2] {r0=in0 -> r0}  # net.fc
%15:f32[6,2]@1 = pointwise %14 %5 {r0=in0 r1=in1 r2=mul(r0,r1) -> r2}  # net.fc
%16:bool[6,2]@1 = pointwise %2 {r0=in0 r1=0 r2=ge(r0,r1) -> r2}  # net.fc
%17:f32[6,2]@1 = pointwise %16 %15 {r0=in0 r1=in1 r2=0 r3=where(r0,r1,r2) -> r3}  # net.fc
%18:f32[3,2]@sum = matmul %0 %17 ta=1  # net.fc
output "loss" %10
)");
}

// A weight that one module reads at every step gets one product; large ones stay apart by use.
TEST_F(BatchTest, JoinsTheProductsOfARecurrence) {
  for (int64_t width : {8, 1}) {
    Program q;
    q.set_site({"net", "model.lua:3"});
    ValueId h = q.batch_input("x", {ORR_F32, {6, width}});
    ValueId w = q.input("w", {ORR_F32, {width, width}});
    for (int t = 0; t < 4; ++t) h = q.pointwise(ORR_FN_TANH, {build::matmul(q, h, w)});
    const ValueId loss = build::mean(q, h, {}, false);
    const std::vector<GradientParts> parts = differentiate(q, loss, {w}).parts;
    EXPECT_EQ(parts[0].partial.size(), width == 8 ? 1u : 4u);
    const Op& last = q.ops()[static_cast<size_t>(q.value(parts[0].partial[0]).producer)];
    EXPECT_EQ(last.kind, "matmul");
    EXPECT_EQ(q.type(last.in[0]).dims, (Dims{width == 8 ? 24 : 6, width}));
    EXPECT_EQ(last.phase, Phase::backward);
  }
}

}  // namespace
}  // namespace program_test
