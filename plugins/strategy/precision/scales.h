// SPDX-License-Identifier: Apache-2.0
//
// Scales that bring a tensor's largest number close below the largest of eight bits.
#pragma once

#include <orrery/sdk/program.hpp>

namespace precision {

// A dtype of eight bits, whose largest number is 1.75 * top.
struct Format {
  int32_t dtype;
  double top;
};
inline constexpr Format kFactors{ORR_F8_E4M3, 0x1p8}, kSlopes{ORR_F8_E5M2, 0x1p15};
inline constexpr double kLargest = 1.75;

// What a scale is for: all numbers that a microbatch has of a tensor, or each row of factors that
// the product adds up.
enum class Over { tensor, rows };

// The largest size among the numbers of v, as f32 that v can be multiplied by. v is of samples
// along dim 0, or a matrix for all of them. Over rows: along `summed`, the dim that the product
// sums over.
// REQUIRES: that dim, and the sides of a matrix, are multiples of 16.
orr::Value largest_size(const orr::Program& p, int32_t v, Over over, int32_t summed);

// The reduce `fn` of v along the dims from `begin` up to `end`, which are dropped.
orr::Value reduced(const orr::Program& p, int32_t v, const char* fn, int64_t begin, int64_t end);
// The largest size among the numbers of each sample, which are along dim 0, as f32.
orr::Value sample_sizes(const orr::Program& p, int32_t v);

// The power of two of the number's leading bit. REQUIRES: numbers from 2^-126 to 2^103.
orr::Value leading_power(orr::Value x);
// The smallest power of two that, times kLargest, is no smaller than the size.
orr::Value fitting_power(const orr::Program& p, orr::Value size);
// The largest power of two by which numbers of at most this size may be multiplied.
orr::Value scale_for(const orr::Program& p, orr::Value size, const Format& format);

// v times the scale, rounded to eight bits.
orr::Value narrowed(const orr::Program& p, int32_t v, orr::Value scale, const Format& format);
// The same where the scale may be too large: what is beyond the largest number becomes that.
orr::Value narrowed_within(const orr::Program& p, int32_t v, orr::Value scale,
                           const Format& format);

// v divided by the scales, in v's dtype.
orr::Value unscaled(const orr::Program& p, int32_t v, const std::vector<orr::Value>& scales);

}  // namespace precision
