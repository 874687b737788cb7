// SPDX-License-Identifier: Apache-2.0
//
// The adds of host backends (sdk/fold.hpp), against the judge's scalar model, for as many operands
// as take one pass, several, and blocks of them.
#include <orrery/sdk/fold.hpp>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "conformance/comm/model.h"

namespace orr {
namespace {

constexpr int32_t dtypes[] = {ORR_F32, ORR_F64, ORR_BF16, ORR_F16, ORR_I32, ORR_I64, ORR_U8};
constexpr int32_t floats[] = {ORR_F32, ORR_F64, ORR_BF16, ORR_F16};
constexpr int32_t redops[] = {ORR_RED_SUM, ORR_RED_PROD, ORR_RED_MIN, ORR_RED_MAX};
constexpr int most_operands = 12;

std::vector<std::vector<char>> operands(int32_t dtype, int k, int64_t n) {
  std::vector<std::vector<char>> in;
  for (int j = 0; j < k; ++j) {
    const comm_suite::Bytes numbers = comm_suite::numbers(dtype, static_cast<uint64_t>(j), n);
    in.emplace_back(numbers.begin(), numbers.end());
  }
  return in;
}

// Folds into operand `where`, or elsewhere where there is none.
std::vector<char> fold(int32_t dtype, int32_t redop, std::vector<std::vector<char>> in, int64_t n,
                       size_t where) {
  std::vector<char> elsewhere(in[0].size());
  std::vector<const void*> from;
  for (const std::vector<char>& operand : in) from.push_back(operand.data());
  std::vector<char>& out = where < in.size() ? in[where] : elsewhere;
  fold_for(dtype, redop)(out.data(), from.data(), static_cast<int>(in.size()), n);
  return out;
}

TEST(Fold, IsTheScalarModelsBitForBit) {
  for (int32_t dtype : dtypes)
    for (int32_t redop : redops)
      for (int k = 1; k <= most_operands; ++k)
        for (int64_t n : {1, 7, 512, 1031}) {
          const comm_suite::Bytes bytes = comm_suite::folded(dtype, redop, k, n);
          const std::vector<char> wanted(bytes.begin(), bytes.end());
          const size_t last = static_cast<size_t>(k) - 1;
          for (size_t where : std::set<size_t>{0, last / 2, last, last + 1})
            EXPECT_EQ(fold(dtype, redop, operands(dtype, k, n), n, where), wanted) << fmt::format(
                "dtype {} redop {}, {} operands of {}, into {}", dtype, redop, k, n, where);
        }
}

TEST(Fold, NanWins) {
  comm_suite::Scalar nan;
  nan.f = std::numeric_limits<float>::quiet_NaN(), nan.d = nan.f;
  const int64_t n = 37, at = 20;
  for (int32_t dtype : floats)
    for (int32_t redop : redops)
      for (int k = 1; k <= most_operands; ++k)
        for (int j = 0; j < k; ++j) {
          const int64_t unit = orr_dtype_bytes(dtype);
          std::vector<std::vector<char>> in = operands(dtype, k, n);
          comm_suite::store(dtype, nan, in[static_cast<size_t>(j)].data() + at * unit);
          const std::vector<char> out = fold(dtype, redop, in, n, in.size());
          const comm_suite::Scalar x = comm_suite::load(dtype, out.data() + at * unit);
          EXPECT_TRUE(std::isnan(dtype == ORR_F64 ? x.d : x.f))
              << fmt::format("dtype {} redop {}, operand {} of {}", dtype, redop, j, k);
        }
}

}  // namespace
}  // namespace orr
