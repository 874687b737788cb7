// SPDX-License-Identifier: Apache-2.0
//
// Convolutions by Winograd's method, which the cpu kernels use where any order of sums is allowed:
// near plain loops in double for images of every kind of edge, and the same bits on every
// instruction set and number of threads.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "cpu_direct.h"
#include "matmul_plan.h"
#include "winograd_plan.h"

namespace {

using namespace orr_test;

struct Case {
  int64_t images, height, width, channels, other;
  bool turned = false;  // the channels of the weights are neighbours
  int64_t pad = 0;      // elements behind each row of pixels and of results
};

const Case cases[] = {
    {2, 8, 8, 16, 32},          // whole tiles
    {1, 16, 16, 32, 16, true},  // half a panel of columns
    {3, 7, 7, 48, 48},          // edges on both sides
    {5, 5, 9, 16, 80, true, 16},
    {1, 1, 130, 16, 16},  // one row
    {40, 2, 2, 80, 32, false, 32},
    {9, 32, 13, 16, 64, true},  // many tiles, of which the last chunk and block are not whole
    {36, 8, 8, 64, 48},
    {2, 12, 12, 336, 16},  // more channels than one block of K
};

std::vector<float> numbers(int64_t count, uint32_t seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> all(static_cast<size_t>(count));
  for (float& x : all) x = uniform(engine);
  return all;
}

// A convolution whose operands have memory of their own.
struct Convolution {
  explicit Convolution(const Case& c)
      : c(c),
        row((c.width + 2) * c.channels + c.pad),
        image((c.height + 2) * row),
        results(c.images * c.height * c.width),
        result_row(c.other + c.pad),
        pixels(numbers(c.images * image, 1)),
        weights(numbers(9 * c.channels * c.other, 2)),
        slopes(numbers(results * result_row, 3)) {}

  orr_tensor windows() const {
    return tensor(ORR_F32, {1, c.images, c.height, c.width, 3, 3 * c.channels},
                  {c.images * image, image, row, c.channels, row, 1});
  }
  // The weight of an input channel at a place of the window and of an output channel.
  size_t weight_at(int64_t place, int64_t in, int64_t out) const {
    const int64_t k = place * c.channels + in;
    return static_cast<size_t>(c.turned ? out * 9 * c.channels + k : k * c.other + out);
  }
  size_t pixel_at(int64_t result, int64_t place, int64_t channel) const {
    const int64_t x = result % c.width + place % 3, y = result / c.width % c.height + place / 3;
    const int64_t n = result / (c.width * c.height);
    return static_cast<size_t>(n * image + y * row + x * c.channels + channel);
  }

  const Case c;
  const int64_t row, image, results, result_row;
  std::vector<float> pixels, weights, slopes;
};

Bytes bytes_of(const std::vector<float>& from) {
  Bytes b(from.size() * sizeof(float));
  std::memcpy(b.data(), from.data(), from.size() * sizeof(float));
  return b;
}

std::vector<float> product(const orr_tensor& a, const orr_tensor& b, const orr_tensor& y,
                           const std::vector<float>& from_a, const std::vector<float>& from_b,
                           size_t size, Make make) {
  orr_tensor in[] = {a, b}, out = y;
  Attributes attrs;
  attrs.add_text("numerics", "fast");
  orr_op op{sizeof(orr_op), 2,      1,      int32_t(attrs.list.size()),
            "matmul",       in,     &out,   attrs.list.data(),
            nullptr,        "test", nullptr};
  EXPECT_TRUE(orr_cpu::use_winograd(op));
  Bytes x = bytes_of(from_a), w = bytes_of(from_b), got(size * sizeof(float));
  EXPECT_TRUE(run(make, op, orr_cpu::matmul_workspace(op), {&x, &w}, {&got}));
  const float* all = static_cast<float*>(got.data());
  return {all, all + size};
}

std::vector<float> results_of(const Convolution& v, Make make) {
  const Case& c = v.c;
  const int64_t k = 9 * c.channels;
  return product(
      v.windows(),
      tensor(ORR_F32, {1, k, c.other}, {k * c.other, c.turned ? 1 : c.other, c.turned ? k : 1}),
      tensor(ORR_F32, {1, v.results, c.other}, {v.results * v.result_row, v.result_row, 1}),
      v.pixels, v.weights, static_cast<size_t>(v.results * v.result_row), make);
}

std::vector<float> gradient_of(const Convolution& v, Make make) {
  const Case& c = v.c;
  const int64_t k = 9 * c.channels, row = k + c.pad;
  return product(
      tensor(ORR_F32, {1, c.other, v.results}, {v.results * v.result_row, 1, v.result_row}),
      v.windows(), tensor(ORR_F32, {1, c.other, k}, {c.other * row, row, 1}), v.slopes, v.pixels,
      static_cast<size_t>(c.other * row), make);
}

// What rounding may leave of a sum of products, whose magnitudes add up to `size`: the transforms
// multiply by up to 8 and cancel what they have added.
double allowed(double size) { return 3e-6 * size; }

class CpuWinograd : public testing::TestWithParam<Make> {
 protected:
  void SetUp() override {
    use_serial_host();
    if (GetParam() == orr_cpu::avx512::make_matmul && !has_avx512()) GTEST_SKIP() << "no AVX-512";
  }
};

TEST_P(CpuWinograd, GivesTheResultsOfPlainLoops) {
  for (const Case& c : cases) {
    const Convolution v(c);
    const std::vector<float> got = results_of(v, GetParam());
    for (int64_t r = 0; r < v.results; ++r)
      for (int64_t n = 0; n < c.other; ++n) {
        double want = 0, size = 0;
        for (int64_t place = 0; place < 9; ++place)
          for (int64_t i = 0; i < c.channels; ++i) {
            const double term = double{v.pixels[v.pixel_at(r, place, i)]} *
                                double{v.weights[v.weight_at(place, i, n)]};
            want += term, size += std::fabs(term);
          }
        ASSERT_NEAR(want, got[static_cast<size_t>(r * v.result_row + n)], allowed(size))
            << "result " << r << " channel " << n << " of " << c.height << "x" << c.width << "x"
            << c.channels;
      }
  }
}

TEST_P(CpuWinograd, GivesTheGradientOfPlainLoops) {
  for (const Case& c : cases) {
    const Convolution v(c);
    const std::vector<float> got = gradient_of(v, GetParam());
    for (int64_t n = 0; n < c.other; ++n)
      for (int64_t k = 0; k < 9 * c.channels; ++k) {
        double want = 0, size = 0;
        for (int64_t r = 0; r < v.results; ++r) {
          const double term = double{v.slopes[static_cast<size_t>(r * v.result_row + n)]} *
                              double{v.pixels[v.pixel_at(r, k / c.channels, k % c.channels)]};
          want += term, size += std::fabs(term);
        }
        ASSERT_NEAR(want, got[static_cast<size_t>(n * (9 * c.channels + c.pad) + k)], allowed(size))
            << "channel " << n << " weight " << k << " of " << c.height << "x" << c.width;
      }
  }
}

TEST_P(CpuWinograd, HasTheSameBitsOnAnyThreadsAndCpus) {
  for (const Case& c : cases) {
    const Convolution v(c);
    thread_count = 1;
    const std::vector<float> results = results_of(v, orr_cpu::avx2::make_matmul);
    const std::vector<float> gradient = gradient_of(v, orr_cpu::avx2::make_matmul);
    for (int t : {1, 2, 5}) {
      thread_count = t;
      EXPECT_EQ(results, results_of(v, GetParam()))
          << t << " threads, " << c.height << "x" << c.width;
      EXPECT_EQ(gradient, gradient_of(v, GetParam()))
          << t << " threads, " << c.height << "x" << c.width;
    }
  }
}

// Everything else is computed as ops.h says.
TEST(CpuWinogradPlan, TakesNoOtherProducts) {
  const Convolution v({2, 8, 8, 16, 32});
  const orr_tensor good[] = {v.windows(), tensor(ORR_F32, {1, 144, 32}, {144 * 32, 32, 1})};
  const auto takes = [](orr_tensor a, orr_tensor b, int64_t rows, const char* numerics,
                        int64_t leaf_lo = 0, int64_t leaf_n = 1, int64_t leaf_total = 1) {
    orr_tensor in[] = {a, b}, out = tensor(ORR_F32, {1, rows, 32}, {rows * 32, 32, 1});
    out.dtype = a.dtype;
    Attributes attrs;
    attrs.add_text("numerics", numerics);
    attrs.add("leaf_lo", leaf_lo).add("leaf_n", leaf_n).add("leaf_total", leaf_total);
    const orr_op op{sizeof(orr_op), 2,      1,      int32_t(attrs.list.size()),
                    "matmul",       in,     &out,   attrs.list.data(),
                    nullptr,        "test", nullptr};
    return orr_cpu::use_winograd(op);
  };
  EXPECT_TRUE(takes(good[0], good[1], 128, "fast"));
  EXPECT_TRUE(takes(good[0], good[1], 128, "fast", 2, 2, 4));
  EXPECT_FALSE(takes(good[0], good[1], 128, "fast", 1, 2, 4));  // two nodes
  EXPECT_FALSE(takes(good[0], good[1], 128, "exact"));
  orr_tensor changed = good[0];
  changed.dtype = ORR_BF16;
  EXPECT_FALSE(takes(changed, good[1], 128, "fast"));
  changed = good[0], changed.strides[3] = 32;  // every other pixel
  EXPECT_FALSE(takes(changed, good[1], 128, "fast"));
  changed = good[0], changed.strides[4] = 2 * changed.strides[2];  // dilated
  EXPECT_FALSE(takes(changed, good[1], 128, "fast"));
  changed = good[0], changed.dims[1] = 1;  // too few results
  EXPECT_FALSE(takes(changed, good[1], 64, "fast"));
  changed = good[0], changed.dims[5] = 24, changed.strides[3] = 8;
  EXPECT_FALSE(takes(changed, tensor(ORR_F32, {1, 72, 32}, {72 * 32, 32, 1}), 128, "fast"));
}

INSTANTIATE_TEST_SUITE_P(Avx2, CpuWinograd, testing::Values(orr_cpu::avx2::make_matmul));
INSTANTIATE_TEST_SUITE_P(Avx512, CpuWinograd, testing::Values(orr_cpu::avx512::make_matmul));

}  // namespace
