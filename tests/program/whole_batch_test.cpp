// SPDX-License-Identifier: Apache-2.0
//
// What a step makes of the whole batch: states that the forward pass updates, results, gradients of
// what samples share. Figures by hand, and the same bits on 1 to 4 ranks.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numeric>

#include "base/error.h"
#include "lower/edit.h"
#include "program/build.h"
#include "program/build_comm.h"
#include "program/state.h"
#include "program/train.h"
#include "run/run.h"
#include "side_by_side.h"
#include "stack.h"

namespace program_test {
namespace {

using namespace orrery;

Values floats(const Bytes& b) {
  Values v(b.size() / 4);
  for (size_t i = 0; i < v.size(); ++i) {
    float x;
    std::memcpy(&x, &b[4 * i], 4);
    v[i] = x;
  }
  return v;
}

class WholeBatch : public ::testing::Test {
 protected:
  WholeBatch() { p.set_site({"net", "model.lua:3"}); }

  ValueId state(const std::string& name, const Dims& dims, double value, Role role = Role::state) {
    auto s = std::make_shared<State>();
    s->name = name, s->type = {ORR_F32, dims}, s->role = role;
    HostTensor t = HostTensor::make(s->type);
    std::fill_n(t.data<float>(), t.type.elements(), static_cast<float>(value));
    s->initial = Initial::of_data(t);
    if (role == Role::param) params.push_back(s);
    return p.state_value(s);
  }
  ValueId times(ValueId v, double by) { return p.pointwise(ORR_FN_MUL, {v, Operand::number(by)}); }
  ValueId plus(ValueId a, Operand b) { return p.pointwise(ORR_FN_ADD, {a, b}); }
  ValueId sum(ValueId v, Dims dims = {}) {
    return build::reduce(p, "sum", v, std::move(dims), false);
  }
  ValueId mean(ValueId v, Dims dims = {}) { return build::mean(p, v, std::move(dims), false); }

  // 0, 1, 2, ... over a batch of [rows, width].
  ValueId counting(int64_t rows, int64_t width) {
    Values v(static_cast<size_t>(rows * width));
    std::iota(v.begin(), v.end(), 0);
    fields["x"] = v;
    return p.batch_input("x", {ORR_F32, {rows, width}});
  }

  // Descends with rate 1: a parameter's change is its gradient.
  void train(ValueId loss) {
    TrainParts parts;
    parts.update = [](Program& q, const std::shared_ptr<State>&, ValueId value, ValueId gradient) {
      return q.pointwise(ORR_FN_SUB, {value, gradient});
    };
    build_training(p, loss, params, parts);
  }

  // A state after a step; the same on any number of ranks for equal microbatches.
  Values after(const std::string& name, int64_t microbatches,
               const std::vector<StrategyUse>& stack = {shared_batch("model.lua:9")}) {
    Bytes first;
    for (int ranks = 1; ranks <= std::min<int64_t>(4, microbatches); ++ranks) {
      Program q = p;
      Spread spread = applied(q, stack, ranks);
      SideBySide all(q, spread, microbatches, {"cpu", "reference"});
      all.step(fields, {{"$seed", {1}}, {"$step", {1}}});
      const Bytes now = all.state(name);
      if (ranks == 1) first = now;
      EXPECT_EQ(now, first) << ranks << " ranks, " << microbatches << " microbatches";
    }
    return floats(first);
  }

  static void near(const Values& got, const Values& want) {
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-6) << i;
  }

  Program p;
  std::vector<std::shared_ptr<State>> params;
  Named fields;
};

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
  EXPECT_EQ(p.value(y).batch_dim, 0);
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

// -- the batch that samples read ------------------------------------------------------------------

// Stacks that deal the batch, of which each may cut what the update works on in its own way.
std::vector<std::vector<StrategyUse>> dealing() {
  const StrategyUse data = shared_batch("model.lua:9");
  std::vector<std::vector<StrategyUse>> found = {{data}, {data, {"recompute", {}, "model.lua:9"}}};
  for (int64_t stage : {1, 2, 3})
    found.push_back({data, {"zero", {{"stage", stage}}, "model.lua:9"}});
  return found;
}

class ReadBySamples : public WholeBatch {
 protected:
  using Loss = std::function<double(const Values& parameter)>;

  ValueId param(const std::string& name, const Dims& dims, const Values& values) {
    ValueId v = state(name, dims, 0, Role::param);
    for (size_t i = 0; i < values.size(); ++i)
      params.back()->initial.tensor.data<float>()[i] = static_cast<float>(values[i]);
    return v;
  }
  ValueId field(const std::string& name, const Dims& dims, const Values& values) {
    fields[name] = values;
    return p.batch_input(name, {ORR_F32, dims});
  }
  ValueId minus(ValueId a, ValueId b) { return p.pointwise(ORR_FN_SUB, {a, b}); }
  ValueId mul(ValueId a, ValueId b) { return p.pointwise(ORR_FN_MUL, {a, b}); }
  ValueId gathered(ValueId x) { return build::all_gather(p, x, build::kBatch, 0); }

  // Each stack has descended by the slope of `loss` at `begin`, a model in plain arithmetic of
  // doubles: [samples] of any number fill microbatches of any.
  void descends(const std::string& name, const Values& begin, const Loss& loss) {
    Values want;
    for (size_t i = 0; i < begin.size(); ++i) {
      Values more = begin, less = begin;
      more[i] += 1e-5, less[i] -= 1e-5;
      want.push_back(begin[i] - (loss(more) - loss(less)) / 2e-5);
    }
    for (const auto& stack : dealing())
      for (int64_t m : {1, 2, 3, 4, 5}) {
        SCOPED_TRACE(fmt::format("{} with {}, {} microbatches", name, stack.back().name, m));
        const Values got = after(name, m, stack);
        ASSERT_EQ(got.size(), want.size());
        for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 2e-5) << i;
      }
  }

  std::string refusal(std::function<void()> body) {
    try {
      body();
    } catch (const Error& e) {
      return e.what();
    }
    return "accepted";
  }

  const int64_t rows = 5;  // do not fill two, three or four microbatches
  static inline const Values xs = {.5, -1,   .25,  1.5, .75,  -.5,  -1.25, .5,
                                   1,  .125, -.75, 2,   .875, -.25, -1.5};
  const Values w0 = {.5, -.25, .75, .125, -.5, 1};
};

// x w, [5,3] by [3,2].
Values product(const Values& x, const Values& w) {
  Values y(10, 0);
  for (size_t r = 0; r < 5; ++r)
    for (size_t c = 0; c < 2; ++c)
      for (size_t k = 0; k < 3; ++k) y[2 * r + c] += x[3 * r + k] * w[2 * k + c];
  return y;
}

TEST_F(ReadBySamples, RowsAreThoseOfTheSamplesInTheirOrder) {
  ValueId x = counting(rows, 2), index = p.cast(build::sample_index(p), ORR_F32);
  p.update(state("rows", {rows, 2}, 0), gathered(x));
  p.update(state("numbers", {rows}, 0), gathered(index));
  p.update(state("columns", {2, rows}, 0),
           build::all_gather(p, build::transpose(p, x, {1, 0}), build::kBatch, 1));
  p.update(state("tokens", {2 * rows}, 0), gathered(build::reshape(p, x, {2 * rows})));
  train(mean(x));
  for (int64_t m : {1, 2, 3, 4, 5}) {
    EXPECT_EQ(after("rows", m), (Values{0, 1, 2, 3, 4, 5, 6, 7, 8, 9})) << m;
    EXPECT_EQ(after("numbers", m), (Values{0, 1, 2, 3, 4})) << m;
    EXPECT_EQ(after("columns", m), (Values{0, 2, 4, 6, 8, 1, 3, 5, 7, 9})) << m;
    EXPECT_EQ(after("tokens", m), (Values{0, 1, 2, 3, 4, 5, 6, 7, 8, 9})) << m;
  }
}

// Every sample tells its own row from all others: -log softmax(z z_all^T)[own].
TEST_F(ReadBySamples, ContrastiveLossHasItsGradient) {
  ValueId x = field("x", {rows, 3}, xs), w = param("w", {3, 2}, w0);
  ValueId z = build::matmul(p, x, w), logits = build::matmul(p, z, gathered(z), false, true);
  train(build::cross_entropy(p, logits, build::sample_index(p), kNone, std::nullopt));
  descends("w", w0, [&](const Values& v) {
    const Values y = product(xs, v);
    double loss = 0;
    for (size_t r = 0; r < 5; ++r) {
      double all = 0, own = 0;
      for (size_t s = 0; s < 5; ++s) {
        const double like = y[2 * r] * y[2 * s] + y[2 * r + 1] * y[2 * s + 1];
        all += std::exp(like);
        if (s == r) own = like;
      }
      loss += (std::log(all) - own) / 5;
    }
    return loss;
  });
}

// Rows find each other both ways: one cotangent is complete, and read, before the other is made.
TEST_F(ReadBySamples, TwoOfThemAreApart) {
  ValueId x = field("x", {rows, 3}, xs), w = param("w", {3, 2}, w0);
  ValueId a = build::matmul(p, x, w), b = p.pointwise(ORR_FN_TANH, {a});
  auto found = [&](ValueId own, ValueId others) {
    ValueId logits = build::matmul(p, own, gathered(others), false, true);
    return build::cross_entropy(p, logits, build::sample_index(p), kNone, std::nullopt);
  };
  train(plus(found(a, b), found(b, a)));
  descends("w", w0, [&](const Values& v) {
    const Values y = product(xs, v);
    auto like = [&](size_t r, size_t s) {
      return y[2 * r] * std::tanh(y[2 * s]) + y[2 * r + 1] * std::tanh(y[2 * s + 1]);
    };
    double loss = 0;
    for (size_t r = 0; r < 5; ++r) {
      double there = 0, back = 0;
      for (size_t s = 0; s < 5; ++s) there += std::exp(like(r, s)), back += std::exp(like(s, r));
      loss += (std::log(there) + std::log(back) - 2 * like(r, r)) / 5;
    }
    return loss;
  });
}

// Mean and variance over the batch, and through both the gradient.
TEST_F(ReadBySamples, BatchStatisticsHaveTheirGradient) {
  const Values target = {1, -1, .5, .25, -2, 1, .75, 0, -.5, 1.25};
  ValueId x = field("x", {rows, 3}, xs), t = field("t", {rows, 2}, target),
          w = param("w", {3, 2}, w0);
  ValueId y = build::matmul(p, x, w), away = minus(y, mean(y, {0}));
  ValueId variance = mean(mul(away, away), {0});
  ValueId scale = p.pointwise(ORR_FN_RSQRT, {plus(variance, Operand::number(0.125))});
  ValueId e = minus(mul(away, scale), t);
  train(mean(mul(e, e)));
  descends("w", w0, [&](const Values& v) {
    const Values z = product(xs, v);
    double loss = 0;
    for (size_t c = 0; c < 2; ++c) {
      double mu = 0, var = 0;
      for (size_t r = 0; r < 5; ++r) mu += z[2 * r + c] / 5;
      for (size_t r = 0; r < 5; ++r) var += (z[2 * r + c] - mu) * (z[2 * r + c] - mu) / 5;
      for (size_t r = 0; r < 5; ++r) {
        const double d = (z[2 * r + c] - mu) / std::sqrt(var + 0.125) - target[2 * r + c];
        loss += d * d / 10;
      }
    }
    return loss;
  });
}

// A sum counts samples alone, in its gradient too; parameters meet it before samples do.
TEST_F(ReadBySamples, ParametersMayMeetThemFirst) {
  const Values u0 = {.25, -.5};
  ValueId x = field("x", {rows, 3}, xs), w = param("w", {3, 2}, w0), u = param("u", {2}, u0);
  ValueId y = build::matmul(p, x, w);
  ValueId context = p.pointwise(ORR_FN_TANH, {plus(times(sum(y, {0}), 0.25), u)});
  ValueId e = plus(y, mul(context, u));
  train(mean(mul(e, e)));
  auto loss = [&](const Values& v, const Values& a) {
    const Values z = product(xs, v);
    double found = 0;
    for (size_t c = 0; c < 2; ++c) {
      double s = 0;
      for (size_t r = 0; r < 5; ++r) s += z[2 * r + c];
      for (size_t r = 0; r < 5; ++r)
        found += std::pow(z[2 * r + c] + std::tanh(s / 4 + a[c]) * a[c], 2) / 10;
    }
    return found;
  };
  descends("w", w0, [&](const Values& v) { return loss(v, u0); });
  descends("u", u0, [&](const Values& a) { return loss(w0, a); });
}

// The cotangent of what all samples share is their sum, of which a table's rows take theirs.
TEST_F(ReadBySamples, AreReadByTheirNumber) {
  ValueId x = field("x", {rows, 3}, xs), w = param("w", {3, 2}, w0);
  ValueId z = build::matmul(p, x, w), index = build::sample_index(p);
  ValueId next = p.pointwise(
      ORR_FN_MOD, {p.pointwise(ORR_FN_ADD, {index, Operand::number(2)}), Operand::number(5)});
  // A table whose rows are seldom read; this is that of the sample two behind.
  ValueId table = build::concat(p, {gathered(z), p.constant(0, ORR_F32, {20, 2})}, 0);
  ValueId other = build::gather(p, table, next);
  train(mean(mul(z, p.pointwise(ORR_FN_TANH, {other}))));
  descends("w", w0, [&](const Values& v) {
    const Values y = product(xs, v);
    double loss = 0;
    for (size_t i = 0; i < 10; ++i) loss += y[i] * std::tanh(y[(i + 4) % 10]) / 10;
    return loss;
  });
}

// The parameter is one element, of which some ranks hold nothing; they take part all the same.
TEST_F(ReadBySamples, PenaltiesMayBeWeighedByThem) {
  ValueId x = field("x", {rows, 3}, xs), w = param("w", {1}, {.5});
  ValueId size = sum(gathered(mul(x, x)));
  ValueId penalty = sum(mul(mul(w, w), size));
  train(plus(mean(mul(x, w)), penalty));
  descends("w", {.5}, [&](const Values& v) {
    double mean = 0, size = 0;
    for (double one : xs) mean += one / 15, size += one * one;
    return mean * v[0] + size * v[0] * v[0];
  });
}

TEST_F(ReadBySamples, AreRefusedWhereTheBatchIsNotThere) {
  ValueId x = counting(4, 3), w = state("w", {3}, 1, Role::param);
  ValueId y = p.pointwise(ORR_FN_MUL, {x, w});
  p.set_site({"net.norm", "model.lua:7"});
  ValueId away = minus(y, mean(y, {0}));
  p.set_site({"net.last", "model.lua:8"});
  away = mul(away, away);
  p.set_site({"net", "model.lua:3"});
  train(mean(mul(away, away)));
  const std::string where =
      "model.lua:7: net.norm: samples read what is made of the whole batch here (a sum or mean "
      "over it), but ";
  const std::string instead =
      "keep it in a buffer with :update, which the next step's samples may read";
  EXPECT_EQ(
      refusal([&] {
        applied(p, {{"pipeline", {}, "model.lua:9"}}, 2);
      }),
      where + "strategy.pipeline runs microbatches one after another: leave it out, or " + instead);
}

// The cotangent of the sum is the parameter's gradient as well, and is complete already.
TEST_F(ReadBySamples, AreNotStoredInTheWiresDtype) {
  ValueId x = counting(4, 3), w = state("w", {3}, 1, Role::param);
  ValueId away = minus(x, plus(mean(p.pointwise(ORR_FN_MUL, {x, w}), {0}), w));
  const Training step(p, mean(mul(away, away)), params, {});
  const StrategyUse wire = {
      "precision", {{"compute", std::string("f32")}, {"wire", std::string("bf16")}}, "model.lua:9"};
  EXPECT_NE(refusal([&] { applied(p, {wire}, 1); })
                .find("net: the gradient of 'w' is completed here in f32, for samples read it, and "
                      "cannot be stored as bf16"),
            std::string::npos);
}

TEST_F(ReadBySamples, AreOfSamplesAlongTheirDim) {
  ValueId x = counting(4, 3), w = state("w", {4, 3}, 1, Role::param);
  EXPECT_EQ(refusal([&] { gathered(w); }),
            "model.lua:3: net: all_gather: f32[4,3] has no rows of single samples, of which the "
            "batch's could be gathered");
  EXPECT_EQ(
      refusal([&] {
        build::all_gather(p, build::transpose(p, x, {1, 0}), build::kBatch, 0);
      }),
      "model.lua:3: net: all_gather: the samples of f32[3,4] lie along dim 2, not 1: give dim "
      "= 2");
  EXPECT_NE(refusal([&] { plus(x, gathered(x)); }).find("does not depend on the batch but has"),
            std::string::npos);
}

// A term of the loss that is no mean: how far the embeddings' second moments are from 1, times a
// parameter.
class Terms : public ReadBySamples {
 protected:
  Terms() : x(field("x", {rows, 3}, xs)), w(param("w", {3, 2}, w0)), y(build::matmul(p, x, w)) {
    ValueId moments = times(build::matmul(p, gathered(y), gathered(y), true, false), 0.2);
    ValueId away = minus(moments, field_of_ones());
    far = mul(sum(mul(away, away)), sum(mul(w, w)));
  }
  ValueId field_of_ones() { return p.constant(1, ORR_F32, {2, 2}); }
  static double far_of(const Values& v) {
    const Values z = product(ReadBySamples::xs, v);
    double found = 0, size = 0;
    for (size_t a = 0; a < 2; ++a)
      for (size_t b = 0; b < 2; ++b) {
        double moment = 0;
        for (size_t r = 0; r < 5; ++r) moment += z[2 * r + a] * z[2 * r + b] / 5;
        found += (moment - 1) * (moment - 1);
      }
    for (double one : v) size += one * one;
    return found * size;
  }
  static double mean_of_squares(const Values& v) {
    double found = 0;
    for (double one : product(ReadBySamples::xs, v)) found += one * one / 10;
    return found;
  }

  ValueId x, w, y, far;
};

TEST_F(Terms, MayBeMadeOfTheWholeBatch) {
  train(plus(mean(mul(y, y)), times(far, 0.25)));
  descends("w", w0, [](const Values& v) { return mean_of_squares(v) + far_of(v) / 4; });
}

TEST_F(Terms, MayBeAllOfTheLoss) {
  train(far);
  descends("w", w0, far_of);
}

TEST_F(Terms, AreTermsBesideAPenalty) {
  train(plus(plus(mean(mul(y, y)), far), sum(mul(w, w))));
  descends("w", w0, [](const Values& v) {
    double penalty = 0;
    for (double one : v) penalty += one * one;
    return mean_of_squares(v) + far_of(v) + penalty;
  });
}

TEST_F(Terms, MultiplyNoMean) {
  EXPECT_NE(refusal([&] { train(mul(mean(mul(y, y)), far)); })
                .find("the loss multiplies a mean over its samples by what is made of the whole "
                      "batch: multiply each sample before the mean"),
            std::string::npos);
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
