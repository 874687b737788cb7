// SPDX-License-Identifier: Apache-2.0
//
// Samples that read the mean of their microbatch, as batch normalisation does: values and gradients
// against plain arithmetic of doubles, with the same bits on 1 to 4 ranks, whatever fills up.
#include <cmath>

#include "base/error.h"
#include "whole_batch.h"

namespace program_test {
namespace {

constexpr size_t kRows = 5;
const Values kX = {.5, -1, .25, 1.5, .75, -.5, -1.25, .5, 1, .125};

// Each row less its microbatch's mean, over the microbatch's deviation, cubed; its mean over all.
double loss_of(const Values& w, size_t rows_each) {
  double loss = 0;
  for (size_t first = 0; first < kRows; first += rows_each)
    for (size_t c = 0; c < 2; ++c) {
      const size_t last = std::min(kRows, first + rows_each);
      const auto n = static_cast<double>(last - first);
      double mean = 0, variance = 0;
      auto z = [&](size_t r) { return kX[2 * r] * w[c] + kX[2 * r + 1] * w[2 + c]; };
      for (size_t r = first; r < last; ++r) mean += z(r) / n;
      for (size_t r = first; r < last; ++r) variance += (z(r) - mean) * (z(r) - mean) / n;
      for (size_t r = first; r < last; ++r)
        loss += std::pow((z(r) - mean) / std::sqrt(variance + .5), 3) / kRows;
    }
  return loss;
}

using MicrobatchMean = WholeBatch;

TEST_F(MicrobatchMean, HasItsGradient) {
  fields["x"] = kX;
  const Values begin = {.5, -.25, .75, 1};
  ValueId x = p.batch_input("x", {ORR_F32, {kRows, 2}});
  ValueId w = state("w", {2, 2}, 0, Role::param);
  for (size_t i = 0; i < begin.size(); ++i)
    params.back()->initial.tensor.data<float>()[i] = static_cast<float>(begin[i]);
  auto mul = [&](ValueId a, ValueId b) { return p.pointwise(ORR_FN_MUL, {a, b}); };
  ValueId z = build::matmul(p, x, w);
  ValueId away = p.pointwise(ORR_FN_SUB, {z, build::microbatch_mean(p, z).first});
  ValueId variance = build::microbatch_mean(p, mul(away, away)).first;
  ValueId y = mul(away, p.pointwise(ORR_FN_RSQRT, {plus(variance, Operand::number(.5))}));
  train(sum(mean(mul(y, mul(y, y)), {0})));
  for (int64_t m : {1, 2, 3, 4, 5})
    for (const char* strategy : {"", "recompute", "zero"}) {
      SCOPED_TRACE(fmt::format("{} microbatches, {}", m, strategy));
      std::vector<StrategyUse> stack = {shared_batch("model.lua:9")};
      if (*strategy) stack.push_back({strategy, {}, "model.lua:9"});
      const Values got = after("w", m, stack);
      const size_t each = (kRows + static_cast<size_t>(m) - 1) / static_cast<size_t>(m);
      for (size_t i = 0; i < begin.size(); ++i) {
        Values more = begin, less = begin;
        more[i] += 1e-5, less[i] -= 1e-5;
        EXPECT_NEAR(got[i], begin[i] - (loss_of(more, each) - loss_of(less, each)) / 2e-5, 2e-5);
      }
    }
}

TEST_F(MicrobatchMean, CountsItsSamples) {
  ValueId x = counting(kRows, 3);
  const auto [mean_of, count] = build::microbatch_mean(p, x);
  p.update(state("means", {3}, 0), mean(mean_of, {0}));
  p.update(state("counts", {1}, 0), mean(count, {0}));
  train(mean(x));
  EXPECT_EQ(after("counts", 1), Values{5});
  EXPECT_EQ(after("counts", 5), Values{1});
  near(after("counts", 2), {(3 * 3 + 2 * 2) / 5.0});
  for (int64_t m : {1, 2, 3, 4, 5}) near(after("means", m), {6, 7, 8});
}

TEST_F(MicrobatchMean, WantsSamplesInTheFirstDim) {
  ValueId x = build::transpose(p, counting(kRows, 2), {1, 0});
  try {
    build::microbatch_mean(p, x);
    ADD_FAILURE() << "accepted";
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(),
                 "model.lua:3: net: microbatch_sum: f32[2,5] is not made of samples along dim 1");
  }
}

}  // namespace
}  // namespace program_test
