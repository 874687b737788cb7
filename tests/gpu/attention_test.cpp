// SPDX-License-Identifier: Apache-2.0
//
// Emulated: attention and its gradient beside the reference, with whatever hides keys: random
// shapes and masks, biases, windows and dropout, on warps and on warpgroups; and that tiles of
// which nothing is seen are left out without a trace in any bit.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "conformance/kernel/cases.h"
#include "conformance/kernel/compare.h"
#include "direct.h"
#include "emulator/block.h"

namespace emulated {
namespace {

using namespace kernel_suite;

struct Shape {
  int32_t dtype;
  int64_t batch, heads, queries, keys, depth;
  bool causal = false;
  double factor = 1;  // of the scale
  double dropout = 0;
  int64_t readers = 1, window = 0;  // heads of queries to one of keys
};

// A bias that lies once where `own` does not say that each sample, head or query has its own.
// `at` gives its numbers; where own is false, the same ones for each.
struct Mask {
  std::vector<bool> own;
  std::function<double(int64_t b, int64_t h, int64_t t, int64_t s)> at;
};
const double kHides = -HUGE_VAL;

Values numbers(const Mask& mask, const Shape& x) {
  Values all;
  for (int64_t b = 0; b < x.batch; ++b)
    for (int64_t h = 0; h < x.heads; ++h)
      for (int64_t t = 0; t < x.queries; ++t)
        for (int64_t s = 0; s < x.keys; ++s)
          all.push_back(mask.at(mask.own[0] ? b : 0, mask.own[1] ? h : 0, mask.own[2] ? t : 0, s));
  return all;
}

// The op and its gradient. Heads are cut out of one fused projection, as models make them.
struct Both {
  Both(const Shape& x, const Mask* mask) {
    const auto [dtype, b, h, t, s, d, causal, factor, rate, readers, near] = x;
    const int64_t row = 3 * h * d;
    const orr_tensor q = strided(dtype, {b, h, t, d}, {t * row, d, row, 1});
    const orr_tensor k = strided(dtype, {b, h / readers, s, d}, {s * row, d, row, 1});
    const orr_tensor o = tensor(dtype, {b, h, t, d}), lse = tensor(wide(dtype), {b, h, t});
    forward.kind = "attention", grad.kind = "attention_grad";
    forward.in = {q, k, k}, forward.out = {o, lse};
    grad.in = {o, q, k, k, o, lse}, grad.out = {q, k, k};
    forward.attrs = {real("scale", factor / std::sqrt(double(d))), integer("causal", causal)};
    if (near) forward.attrs.push_back(integer("window", near));
    forward.fills.resize(3), grad.fills.resize(6);
    if (mask) add_bias(x, *mask);
    if (rate > 0) add_dropout(rate);
    forward.depth = grad.depth = double(s + d);
    forward.note = grad.note = shape_note({b, h, t, s, d});
    grad.attrs.insert(grad.attrs.end(), forward.attrs.begin(), forward.attrs.end());
  }

  void add_bias(const Shape& x, const Mask& mask) {
    std::vector<int64_t> dims = {x.batch, x.heads, x.queries, x.keys}, strides(4);
    int64_t step = 1;
    for (size_t i = 4; i-- > 0;) {
      const bool own = i == 3 || mask.own[i];
      strides[i] = own ? step : 0, step *= own ? dims[i] : 1;
    }
    for (Case* c : {&forward, &grad}) {
      c->in.push_back(strided(x.dtype, dims, strides));
      c->fills.push_back(values(numbers(mask, x)));
    }
    grad.out.push_back(tensor(x.dtype, dims));
    grad.attrs.push_back(integer("bias_grad", 1));
  }

  void add_dropout(double rate) {
    forward.attrs.push_back(real("dropout", rate));
    forward.attrs.push_back(integer("rng_id", 77));
    for (Case* c : {&forward, &grad})
      for (double number : {1234567, 9, 1000}) {
        c->in.push_back(tensor(ORR_I64, {}));
        c->fills.push_back(values({number}));
      }
  }

  // Of the gradient; those of attention are `of_forward` of them.
  std::vector<Values> inputs(uint32_t seed) const {
    std::vector<Values> all = make_inputs(grad, false, seed);
    with_outputs(all);
    return all;
  }
  void with_outputs(std::vector<Values>& all) const {
    const RunResult f = kernel_suite::run("reference", forward, of_forward(all));
    all[4] = f.values[0], all[5] = f.values[1];
  }
  static std::vector<Values> of_forward(const std::vector<Values>& all) {
    std::vector<Values> some = {all[1], all[2], all[3]};
    some.insert(some.end(), all.begin() + 6, all.end());
    return some;
  }

  Case forward, grad;
};

void expect_reference(const Case& c, const std::vector<Values>& inputs, bool flash) {
  const RunResult got = run(c, inputs, {}, 5);
  ASSERT_EQ(got.unsupported, "");
  ASSERT_EQ(trouble(got), "");
  EXPECT_EQ(std::string(got.support.numerics).find("flash") != std::string::npos, flash);
  EXPECT_EQ(distance(c, got.values, kernel_suite::run("reference", c, inputs).values), "")
      << c.name();
  EXPECT_EQ(run(c, inputs, {}, 6).bits, got.bits) << c.name() << " in another order of threads";
}

void expect_reference(const Shape& x, const Mask* mask = nullptr, bool flash = true) {
  const Both both(x, mask);
  const std::vector<Values> inputs = both.inputs(9);
  expect_reference(both.forward, Both::of_forward(inputs), flash);
  expect_reference(both.grad, inputs, flash);
}

// -- masks ----------------------------------------------------------------------------------------

// A length for each sample, behind which all is padding.
Mask padding(int64_t keys) {
  return {{true, false, false}, [=](int64_t b, int64_t, int64_t, int64_t s) {
            return s < std::max<int64_t>(1, keys * (b + 1) / 3 - 5) ? 0 : kHides;
          }};
}
Mask window(int64_t width) {
  return {{false, false, true}, [=](int64_t, int64_t, int64_t t, int64_t s) {
            return std::abs(t - s) < width ? 0 : kHides;
          }};
}
// Booleans, of which some rows hide all.
Mask booleans() {
  return {{true, false, true}, [](int64_t b, int64_t, int64_t t, int64_t s) {
            return (t * 7 + s * 3 + b) % 5 == 1 || t % 9 == 4 ? kHides : 0;
          }};
}
// Numbers, as of relative positions.
Mask relative() {
  return {{false, true, true}, [](int64_t, int64_t h, int64_t t, int64_t s) {
            return double((t - s + 300) * 5 % 17 - 8) / 8 * double(h + 1);
          }};
}
// Numbers for keys alone.
Mask slopes() {
  return {{false, true, false},
          [](int64_t, int64_t h, int64_t, int64_t s) { return -double(s % 64) / 32 * double(h); }};
}
Mask everything() {
  return {{true, true, true}, [](int64_t b, int64_t h, int64_t t, int64_t s) {
            return s / 64 == (b + h) % 2 || t % 11 == 3 ? kHides : double((t + 3 * s) % 13 - 6) / 4;
          }};
}
Mask nothing_seen() {
  return {{true, true, true}, [](int64_t, int64_t, int64_t, int64_t) { return kHides; }};
}

class Warps : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override { emulator::has_warpgroups = GetParam(); }
  void TearDown() override { emulator::has_warpgroups = true; }
};
INSTANTIATE_TEST_SUITE_P(EmulatedAttention, Warps, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "sm_90a" : "sm_80"; });

TEST_P(Warps, RandomShapesUnderEveryMask) {
  std::mt19937 random(GetParam() ? 1 : 2);
  const auto any = [&](int64_t low, int64_t high) {
    return low + int64_t(random() % uint64_t(high - low + 1));
  };
  const auto one_of = [&](std::vector<int64_t> all) { return all[random() % all.size()]; };
  for (int round = 0; round < 2; ++round)
    for (int kind = 0; kind < 7; ++kind) {
      Shape x{random() % 3 ? ORR_BF16 : ORR_F16,
              any(1, 2),
              any(1, 2),
              any(1, 140),
              any(1, 200),
              one_of({8, 32, 33, 64, 72, 96, 128, 160, 256})};
      if (random() % 2) x.keys = (x.keys + 7) / 8 * 8;  // rows of whole packets
      x.causal = random() % 3 == 0;
      x.dropout = random() % 4 == 0 ? 0.25 : 0;
      if (random() % 3 == 0) x.readers = x.heads;
      if (random() % 3 == 0) x.window = any(1, 150);
      const Mask masks[] = {padding(x.keys), window(any(1, 70)), booleans(),    relative(),
                            slopes(),        everything(),       nothing_seen()};
      SCOPED_TRACE(testing::Message()
                   << "mask " << kind << shape_note({x.batch, x.heads, x.queries, x.keys, x.depth})
                   << (x.causal ? " causal" : "") << (x.dropout > 0 ? " dropout" : ""));
      expect_reference(x, &masks[kind]);
    }
}

TEST_P(Warps, DeepHeadsAndManyTiles) {
  const int32_t dtype = GetParam() ? ORR_BF16 : ORR_F16;
  for (bool causal : {false, true}) {
    for (int64_t d : {32, 64, 72, 128, 256}) expect_reference({dtype, 1, 2, 130, 130, d, causal});
    expect_reference({dtype, 1, 2, 65, 200, 64, causal});
    expect_reference({dtype, 1, 2, 100, 30, 160, causal});
  }
  expect_reference({dtype, 1, 2, 40, 40, 264, true}, nullptr, false);
  expect_reference({ORR_F32, 1, 2, 70, 70, 128, true}, nullptr, false);
  expect_reference({dtype, 1, 2, 40, 40, 64, true, -1}, nullptr, false);
  const Mask mask = booleans();
  expect_reference({ORR_F32, 1, 2, 70, 70, 64, false}, &mask, false);
}

TEST_P(Warps, GroupedHeadsAndWindows) {
  const int32_t dtype = GetParam() ? ORR_F16 : ORR_BF16;
  for (int64_t d : {64, 128, 256}) {
    expect_reference({dtype, 2, 6, 70, 130, d, true, 1, 0, 3});
    expect_reference({dtype, 1, 2, 130, 130, d, true, 1, 0, 1, 50});
    expect_reference({dtype, 1, 2, 130, 200, d, false, 1, 0.2, 2, 40});
  }
  expect_reference({dtype, 1, 2, 200, 100, 64, true, 1, 0, 1, 30});
  expect_reference({dtype, 1, 2, 100, 400, 64, true, 1, 0, 2, 200});
  expect_reference({dtype, 1, 2, 130, 130, 32, true, 1, 0, 1, 1});
  expect_reference({ORR_F32, 2, 6, 70, 130, 64, true, 1, 0.2, 3}, nullptr, false);
  expect_reference({ORR_F32, 1, 2, 130, 130, 40, false, 1, 0, 2, 35}, nullptr, false);
  expect_reference({ORR_F32, 1, 2, 100, 200, 160, true, 1, 0, 1, 35}, nullptr, false);
  const Mask mask = relative();
  expect_reference({dtype, 2, 4, 130, 130, 64, true, 1, 0, 2, 70}, &mask);
  expect_reference({ORR_F32, 1, 4, 70, 70, 64, false, 1, 0, 2, 20}, &mask, false);
}

// Keys that a window hides from all queries may be NaN: nothing reads their tiles.
TEST_P(Warps, KeysOutsideOfAWindowAreNotRead) {
  const Both both({ORR_BF16, 1, 2, 64, 640, 64, true, 1, 0, 2, 100}, nullptr);
  std::vector<Values> inputs = both.inputs(4), spoilt = inputs;
  for (size_t i : {2, 3})
    for (size_t e = 0; e < spoilt[i].size(); ++e)
      if (int64_t(e) / 64 % 640 < 7 * 64) spoilt[i][e] = std::nan("");
  EXPECT_EQ(run(both.forward, Both::of_forward(spoilt)).bits,
            run(both.forward, Both::of_forward(inputs)).bits);
  EXPECT_EQ(run(both.grad, spoilt).bits, run(both.grad, inputs).bits);
}

// Scores that exceed those of earlier tiles by far.
TEST_P(Warps, LargeScores) {
  for (int32_t dtype : {ORR_BF16, ORR_F16}) expect_reference({dtype, 1, 2, 130, 330, 64, true, 12});
}

// More tiles than are looked at together, most of them hidden.
TEST_P(Warps, LongSequencesOfAWindow) {
  const Mask mask = window(20),
             far = {{false, false, false}, [](int64_t, int64_t, int64_t, int64_t s) {
                      return s / 64 % 19 == 18 ? 0.5 : kHides;
                    }};
  expect_reference({ORR_BF16, 1, 1, 70, 2400, 16}, &far);
  expect_reference({ORR_BF16, 1, 1, 2400, 40, 16}, &mask);
}

// -- hidden tiles ---------------------------------------------------------------------------------

// The keys of the tiles that are seen: 0 and 2 of 5, and the first 30 of tile 3.
const std::vector<std::pair<int64_t, int64_t>> kSeen = {{0, 64}, {128, 222}};

bool is_seen(int64_t s) {
  return std::any_of(kSeen.begin(), kSeen.end(),
                     [=](auto range) { return s >= range.first && s < range.second; });
}

// The rows of keys, in dim 2, that are seen.
template <class List>
List seen_rows(const orr_tensor& t, const List& all) {
  List some;
  const int64_t heads = t.dims[0] * t.dims[1], row = int64_t(all.size()) / (heads * t.dims[2]);
  for (int64_t h = 0; h < heads; ++h)
    for (auto [first, end] : kSeen)
      some.insert(some.end(), all.begin() + (h * t.dims[2] + first) * row,
                  all.begin() + (h * t.dims[2] + end) * row);
  return some;
}

// What is hidden may be NaN: nothing reads it. The other bits are those of attention without it.
TEST_P(Warps, HiddenTilesLeaveNoTrace) {
  const Shape x{ORR_BF16, 2, 2, 100, 320, 64}, fewer{ORR_BF16, 2, 2, 100, 158, 64};
  const Mask mask{{false, false, false},
                  [](int64_t, int64_t, int64_t, int64_t s) { return is_seen(s) ? 0.0 : kHides; }};
  const Mask zeros{{false, false, false}, [](int64_t, int64_t, int64_t, int64_t) { return 0.0; }};
  const Both hidden(x, &mask), without(fewer, &zeros);
  std::vector<Values> inputs = hidden.inputs(4), some = inputs;
  for (int i : {2, 3}) some[size_t(i)] = seen_rows(hidden.grad.in[size_t(i)], inputs[size_t(i)]);
  some[6].assign(size_t(2 * 2 * 100 * 158), 0.0);
  for (int i : {2, 3})
    for (size_t e = 0; e < inputs[size_t(i)].size(); ++e) {
      const int64_t key = int64_t(e) / x.depth % x.keys;
      if (key / 64 == 1 || key / 64 == 4) inputs[size_t(i)][e] = std::nan("");
    }
  const RunResult o = run(hidden.forward, Both::of_forward(inputs));
  ASSERT_EQ(trouble(o), "");
  EXPECT_EQ(o.bits, run(without.forward, Both::of_forward(some)).bits);
  const RunResult all = run(hidden.grad, inputs), few = run(without.grad, some);
  ASSERT_EQ(trouble(all), "");
  EXPECT_EQ(all.bits[0], few.bits[0]) << "dq";
  for (size_t i : {1, 2}) {
    EXPECT_EQ(seen_rows(hidden.grad.out[i], all.bits[i]), few.bits[i]) << "output " << i;
    for (size_t e = 0; e < all.values[i].size(); ++e)
      EXPECT_TRUE(is_seen(int64_t(e) / x.depth % x.keys) || all.values[i][e] == 0) << e;
  }
  for (size_t e = 0; e < all.values[3].size(); ++e)
    if (!is_seen(int64_t(e) % x.keys)) {
      ASSERT_EQ(all.bits[3][2 * e + 1], 0) << "+0 of the bias at " << e;
      ASSERT_EQ(all.values[3][e], 0) << e;
    }
}

// Queries that see nothing of a tile of keys do not reach its gradients.
TEST_P(Warps, HiddenQueriesLeaveNoTrace) {
  const Shape x{ORR_F16, 1, 2, 256, 128, 128};
  const Mask mask{{false, false, true}, [](int64_t, int64_t, int64_t t, int64_t s) {
                    return s < 64 || t / 64 != 1 ? 0.0 : kHides;
                  }};
  const Both both(x, &mask);
  std::vector<Values> inputs = both.inputs(4);
  const RunResult right = run(both.grad, inputs);
  for (int i : {0, 1})
    for (size_t e = 0; e < inputs[size_t(i)].size(); ++e)
      if (int64_t(e) / x.depth % x.queries / 64 == 1) inputs[size_t(i)][e] = std::nan("");
  const RunResult spoilt = run(both.grad, inputs);
  for (size_t i : {1, 2})
    for (size_t e = 0; e < right.values[i].size(); ++e)
      EXPECT_TRUE(int64_t(e) / x.depth % x.keys < 64 || spoilt.values[i][e] == right.values[i][e])
          << "output " << i << ", " << e;
}

// The bits of a tile do not depend on whether the bias beside it is 0 throughout.
TEST_P(Warps, OpenTilesHaveTheBitsOfOthers) {
  const Shape x{ORR_BF16, 1, 1, 64, 128, 64};
  const auto mask = [](int64_t last) {
    return Mask{{false, false, true},
                [=](int64_t, int64_t, int64_t t, int64_t) { return t == 63 ? double(last) : 0.0; }};
  };
  const Mask open = mask(0), other = mask(1);
  const Both a(x, &open), b(x, &other);
  std::vector<Values> inputs = a.inputs(6);
  const RunResult whole = run(a.forward, Both::of_forward(inputs));
  inputs[6] = numbers(other, x);
  const RunResult mixed = run(b.forward, Both::of_forward(inputs));
  const size_t first_rows = size_t(63 * x.depth);
  for (size_t e = 0; e < first_rows; ++e) ASSERT_EQ(mixed.values[0][e], whole.values[0][e]) << e;
}

}  // namespace
}  // namespace emulated
