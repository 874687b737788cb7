// SPDX-License-Identifier: Apache-2.0
//
// The orders of sums that ops.h fixes, bit for bit, on every host plugin: written once more, as
// lists of partial sums, with random reals whose sum depends on the order.
#include <cmath>

#include "compare.h"
#include "conformance/kernel/cases.h"

namespace kernel_suite {
namespace {

template <class A>
A tree(std::vector<A> sums) {
  if (sums.empty()) return 0;
  while (sums.size() > 1) {
    std::vector<A> next;
    for (size_t i = 0; i < sums.size(); i += 2)
      next.push_back(i + 1 < sums.size() ? A(sums[i] + sums[i + 1]) : sums[i]);
    sums = next;
  }
  return sums[0];
}

template <class A>
A row_sum(const std::vector<A>& x) {
  std::vector<A> blocks;
  for (size_t first = 0; first < x.size(); first += 1024) {
    std::vector<A> lane(16, A(0));
    for (size_t i = first; i < std::min(first + 1024, x.size()); ++i) lane[i % 16] += x[i];
    for (size_t half : {8, 4, 2, 1})
      for (size_t j = 0; j < half; ++j) lane[j] += lane[j + half];
    blocks.push_back(lane[0]);
  }
  return tree(blocks);
}

template <class A>
A column_sum(const std::vector<A>& x) {
  std::vector<A> blocks;
  for (size_t first = 0; first < x.size(); first += 64) {
    A sum = 0;
    for (size_t i = first; i < std::min(first + 64, x.size()); ++i) sum += x[i];
    blocks.push_back(sum);
  }
  return tree(blocks);
}

template <class A>
A dot(const std::vector<A>& a, const std::vector<A>& b) {
  A total = 0;
  for (size_t first = 0; first < a.size(); first += 256) {
    A sum = 0;
    for (size_t i = first; i < std::min(first + 256, a.size()); ++i)
      sum = std::fma(a[i], b[i], sum);
    total = first == 0 ? sum : A(total + sum);
  }
  return total;
}

class Order : public ::testing::TestWithParam<std::tuple<std::string, int32_t>> {
 protected:
  // Output 0 of the case, whose every element is f(A{}, inputs) for the dtype's accumulator.
  template <class F>
  void expect_order(const Case& c, F&& f) {
    std::vector<Values> inputs = make_inputs(c, false, 7);
    RunResult r = run(std::get<0>(GetParam()), c, inputs);
    if (!r.unsupported.empty()) return;
    ASSERT_TRUE(clean(r));
    double value = c.out[0].dtype == ORR_F64 ? f(double{}, inputs) : double(f(float{}, inputs));
    EXPECT_EQ(r.values[0], Values(r.values[0].size(), rounded(c.out[0].dtype, value))) << c.name();
  }
  int32_t dtype() const { return std::get<1>(GetParam()); }
};

Case one_sum(int32_t dtype, const char* kind, int64_t k, const char* fn = "sum") {
  Case c;
  c.kind = kind;
  c.note = std::to_string(k);
  c.in = {tensor(dtype, {1, k, 1})};
  c.out = {tensor(dtype, {1, 1})};
  c.attrs = {text("fn", fn)};
  return c;
}

template <class A>
std::vector<A> as(const Values& v) {
  return std::vector<A>(v.begin(), v.end());
}

TEST_P(Order, OfRowSums) {
  for (int64_t k : {1, 5, 16, 100, 1024, 1025, 5000, 7 * 1024})
    expect_order(one_sum(dtype(), "reduce", k), [](auto a, const std::vector<Values>& x) {
      return row_sum(as<decltype(a)>(x[0]));
    });
}

TEST_P(Order, OfSumsOfSquares) {
  for (int64_t k : {1, 17, 1025, 5000})
    expect_order(one_sum(dtype(), "reduce", k, "sumsq"), [](auto a, const std::vector<Values>& x) {
      std::vector<decltype(a)> squares = as<decltype(a)>(x[0]);
      for (auto& v : squares) v *= v;
      return row_sum(squares);
    });
}

// The same column five times, so that every column has one expected sum.
TEST_P(Order, OfColumnSums) {
  for (int64_t k : {1, 64, 65, 320, 449}) {
    Case c = one_sum(dtype(), "reduce", k);
    c.in[0].dims[2] = c.out[0].dims[1] = 5;
    c.in[0].strides[1] = 5;
    c.derive = [](const Case&, std::vector<Values>& x) {
      for (size_t i = 0; i < x[0].size(); ++i) x[0][i] = x[0][i / 5 * 5];
    };
    expect_order(c, [k](auto a, const std::vector<Values>& x) {
      std::vector<decltype(a)> column;
      for (size_t i = 0; i < size_t(k); ++i) column.push_back(decltype(a)(x[0][i * 5]));
      return column_sum(column);
    });
  }
}

// Rows of a and columns of b are all alike, by strides of 0.
TEST_P(Order, OfMatrixProducts) {
  for (int64_t k : {1, 3, 256, 257, 1000})
    for (int64_t m : {1, 2, 9, 70}) {
      Case c = one_sum(dtype(), "matmul", k);
      c.in = {strided(dtype(), {1, m, k}, {0, 0, 1}), strided(dtype(), {1, k, 20}, {0, 1, 0})};
      c.out = {tensor(dtype(), {1, m, 20})};
      c.attrs.clear();
      expect_order(c, [k](auto a, const std::vector<Values>& x) {
        std::vector<decltype(a)> row = as<decltype(a)>(x[0]), column;
        row.erase(row.begin(), row.end() - k);
        for (size_t i = 0; i < size_t(k); ++i) column.push_back(decltype(a)(x[1][i * 20]));
        return dot(row, column);
      });
    }
}

std::string order_name(const ::testing::TestParamInfo<std::tuple<std::string, int32_t>>& info) {
  return std::get<0>(info.param) + "_" + dtype_name(std::get<1>(info.param));
}

// The sums of x[1,4,3,5,2,1], windows of 5 by 2 side by side: y[1,8,4,1].
template <class A>
std::vector<A> folded(const Values& x) {
  std::vector<A> y(32, A(0));
  for (size_t o = 0; o < 12; ++o)
    for (size_t k = 0; k < 10; ++k) y[(o / 3 + k / 2) * 4 + o % 3 + k % 2] += A(x[o * 10 + k]);
  return y;
}

TEST_P(Order, OfWindows) {
  Case c;
  c.kind = "fold";
  c.in = {tensor(dtype(), {1, 4, 3, 5, 2, 1})}, c.out = {tensor(dtype(), {1, 8, 4, 1})};
  c.attrs = {list("stride", {1, 1}), list("dilation", {1, 1})};
  const std::vector<Values> x = make_inputs(c, false, 7);
  const RunResult r = run(std::get<0>(GetParam()), c, x);
  if (!r.unsupported.empty()) return;
  ASSERT_TRUE(clean(r));
  Values wanted;
  if (dtype() == ORR_F64)
    wanted = folded<double>(x[0]);
  else
    for (float y : folded<float>(x[0])) wanted.push_back(rounded(dtype(), double(y)));
  EXPECT_EQ(r.values[0], wanted);
}

INSTANTIATE_TEST_SUITE_P(All, Order,
                         ::testing::Combine(::testing::ValuesIn(host_plugins()),
                                            ::testing::ValuesIn(kReals)),
                         order_name);

}  // namespace
}  // namespace kernel_suite
