// SPDX-License-Identifier: Apache-2.0
//
// The three products of a head with an odd number of classes, on the fake cuBLASLt: the padding of
// logits is used, so that the library sees whole packets, and never read as data.
#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <functional>
#include <limits>

#include "fake_step.h"

namespace {

using namespace fake_step;
using kernel_suite::integer;
using kernel_suite::strided;

constexpr int64_t samples = 8, channels = 16, classes = 301, row = 320;

float number(int64_t i) { return static_cast<float>((i * 7919 + 13) % 1009) / 1009 - 0.4f; }

// Elements of a tensor whose rows begin `stride` apart, with NaN between them.
std::vector<float> rows_of(int64_t count, int64_t length, int64_t stride, int64_t seed) {
  std::vector<float> x(static_cast<size_t>(count * stride),
                       std::numeric_limits<float>::quiet_NaN());
  for (int64_t i = 0; i < count; ++i)
    for (int64_t j = 0; j < length; ++j)
      x[static_cast<size_t>(i * stride + j)] = number(i * length + j + seed);
  return x;
}

struct Result {
  std::vector<float> y;
  unsigned long long odd;  // calls of the library with an odd extent
  std::vector<float> a;    // as it is afterwards
};

// y of a product of these inputs, whose memory ends with its last row.
Result multiply(const Case& c, const std::vector<std::vector<float>>& in, int64_t elements) {
  const auto bytes = [](size_t n) { return 4 * static_cast<uint64_t>(n); };
  const auto size = static_cast<size_t>(elements);
  const Kernel kernel(c);
  const Stream stream;
  std::deque<Memory> host, there;
  std::vector<orr_buffer> whole;
  for (const std::vector<float>& x : in) {
    host.emplace_back(ORR_TIER_PINNED, bytes(x.size()));
    there.emplace_back(ORR_TIER_DEVICE, bytes(x.size()));
    std::copy(x.begin(), x.end(), host.back().floats());
    stream.copy(there.back(), host.back());
    whole.push_back(there.back().whole);
  }
  Memory hy(ORR_TIER_PINNED, bytes(size)), dy(ORR_TIER_DEVICE, bytes(size));
  const auto before = calls({"product with an odd extent"});
  kernel.launch(stream, whole, dy);
  const auto odd = calls({"product with an odd extent"}) - before;
  stream.copy(hy, dy), stream.copy(host[0], there[0]);
  stream.finish();
  const float* const a = host[0].floats();
  return {{hy.floats(), hy.floats() + elements}, odd, {a, a + in[0].size()}};
}

Case product(orr_tensor a, orr_tensor b, orr_tensor y, int64_t padded) {
  Case c;
  c.kind = "matmul", c.in = {a, b}, c.out = {y};
  if (padded) c.attrs.push_back(integer("padded", padded));
  return c;
}

void expect_sums(const Result& r, int64_t rows, int64_t cols, int64_t stride, int64_t depth,
                 const std::function<double(int64_t, int64_t, int64_t)>& term) {
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < cols; ++j) {
      double sum = 0;
      for (int64_t k = 0; k < depth; ++k) sum += term(i, j, k);
      ASSERT_NEAR(r.y[static_cast<size_t>(i * stride + j)], sum, 1e-4) << i << ", " << j;
    }
}

// What a product gives whose tensors `padded` have padding; without it the library gets an odd one.
Result with_padding(const std::function<Result(int64_t)>& run, int64_t padded) {
  const Result r = run(padded);
  EXPECT_EQ(r.odd, 0u);
  EXPECT_GT(run(0).odd, 0u);
  return r;
}

const std::vector<float> x = rows_of(samples, channels, channels, 1),
                         w = rows_of(classes, channels, channels, 2),
                         dlogits = rows_of(samples, classes, row, 3);
double at(const std::vector<float>& t, int64_t i) { return t[static_cast<size_t>(i)]; }

TEST(OddClasses, Logits) {
  const auto run = [](int64_t padded) {
    return multiply(product(tensor(ORR_F32, {1, samples, channels}),
                            strided(ORR_F32, {1, channels, classes}, {0, 1, channels}),
                            strided(ORR_F32, {1, samples, classes}, {0, row, 1}), padded),
                    {x, w}, samples * row);
  };
  expect_sums(with_padding(run, 4), samples, classes, row, channels,
              [](int64_t i, int64_t j, int64_t k) {
                return at(x, i * channels + k) * at(w, j * channels + k);
              });
}

TEST(OddClasses, GradientOfTheInput) {
  const auto run = [](int64_t padded) {
    return multiply(product(strided(ORR_F32, {1, samples, classes}, {0, row, 1}),
                            tensor(ORR_F32, {1, classes, channels}),
                            tensor(ORR_F32, {1, samples, channels}), padded),
                    {dlogits, w}, samples * channels);
  };
  expect_sums(with_padding(run, 1), samples, channels, channels, classes,
              [](int64_t i, int64_t j, int64_t k) {
                return at(dlogits, i * row + k) * at(w, k * channels + j);
              });
}

// The library adds the bias, of which it reads as many numbers as there are columns with padding.
TEST(OddClasses, LogitsWithABias) {
  std::vector<float> bias = rows_of(1, classes, classes, 4);
  const auto run = [&](int64_t padded) {
    Case c = product(tensor(ORR_F32, {1, samples, channels}),
                     strided(ORR_F32, {1, channels, classes}, {0, 1, channels}),
                     strided(ORR_F32, {1, samples, classes}, {0, row, 1}), padded);
    c.kind = "matmul_pointwise";
    c.in.push_back(strided(ORR_F32, {1, samples, classes}, {0, 0, 1}));
    c.instrs = {{ORR_FN_INPUT, ORR_F32, 0, 0, 0, 0, 0},
                {ORR_FN_INPUT, ORR_F32, 1, 0, 0, 0, 0},
                {ORR_FN_ADD, ORR_F32, 0, 1, 0, 0, 0}};
    c.stored = {2};
    const auto before = calls({"epilogue bias"});
    const Result r = multiply(c, {x, w, bias}, samples * row);
    EXPECT_EQ(calls({"epilogue bias"}) > before, padded != 0);
    return r;
  };
  expect_sums(with_padding(run, 4), samples, classes, row, channels,
              [&](int64_t i, int64_t j, int64_t k) {
                return at(x, i * channels + k) * at(w, j * channels + k) + (k ? 0 : at(bias, j));
              });
}

// Of two leaves, each of four samples, and their sum.
TEST(OddClasses, GradientOfTheWeight) {
  const auto run = [](int64_t padded) {
    Case c = product(strided(ORR_F32, {1, classes, samples}, {0, 1, row}),
                     tensor(ORR_F32, {1, samples, channels}),
                     tensor(ORR_F32, {1, classes, channels}), padded);
    for (auto [name, value] : {std::pair{"leaf_lo", 0}, {"leaf_n", 2}, {"leaf_total", 2}})
      c.attrs.push_back(integer(name, value));
    return multiply(c, {dlogits, x}, classes * channels);
  };
  expect_sums(with_padding(run, 1), classes, channels, channels, samples,
              [](int64_t i, int64_t j, int64_t k) {
                return at(dlogits, k * row + i) * at(x, k * channels + j);
              });
}

// An odd number of samples has the bits of an even one.
TEST(OddClasses, PaddingDoesNotDependOnTheNumberOfSamples) {
  const auto run = [](int64_t count) {
    const std::vector<float> some(dlogits.begin(), dlogits.begin() + count * row);
    return multiply(
        product(strided(ORR_F32, {1, count, classes}, {0, row, 1}),
                tensor(ORR_F32, {1, classes, channels}), tensor(ORR_F32, {1, count, channels}), 1),
        {some, w}, count * channels);
  };
  std::vector<float> most = run(samples).y;
  most.resize(3 * channels);
  EXPECT_EQ(run(3).y, most);
}

// Where nothing says that the rows of a tensor have padding, what lies between them is another's.
TEST(OddClasses, WhatIsNoPaddingIsLeftAlone) {
  std::vector<float> both = dlogits;
  for (float& each : both)
    if (std::isnan(each)) each = 7;
  const Result r = multiply(
      product(strided(ORR_F32, {1, samples, classes}, {0, row, 1}),
              tensor(ORR_F32, {1, classes, channels}), tensor(ORR_F32, {1, samples, channels}), 2),
      {both, w}, samples * channels);
  EXPECT_GT(r.odd, 0u);
  EXPECT_EQ(r.a, both);
}

}  // namespace
