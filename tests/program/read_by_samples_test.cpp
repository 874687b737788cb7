// SPDX-License-Identifier: Apache-2.0
//
// The whole batch where its samples read it: sums, means and gathered rows in the midst of forward.
// Models in plain arithmetic of doubles are the oracle; the bits are the same on 1 to 4 ranks.
#include <cmath>

#include "base/error.h"
#include "edit/edit.h"
#include "program/build_comm.h"
#include "whole_batch.h"

namespace program_test {
namespace {

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

TEST_F(Terms, MultiplyAMean) {
  train(mul(mean(mul(y, y)), far));
  descends("w", w0, [](const Values& v) { return mean_of_squares(v) * far_of(v); });
}

}  // namespace
}  // namespace program_test
