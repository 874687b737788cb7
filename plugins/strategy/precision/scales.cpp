// SPDX-License-Identifier: Apache-2.0
//
// Scales are powers of two, so that multiplying and dividing by them changes no bit of a fraction.
#include "scales.h"

#include <algorithm>
#include <vector>

namespace precision {
namespace {

constexpr double kSmallest = 0x1p-100;  // smaller sizes, and zero, count as this one
// Where ranks have parts of a dim, each reduces its own blocks, and only their sizes travel.
constexpr int64_t kBlocks = 16;

orr::Value larger(const orr::Program& p, orr::Value a, orr::Operand b) {
  return p.pointwise(ORR_FN_MAX, {a, b});
}

}  // namespace

orr::Value reduced(const orr::Program& p, int32_t v, const char* fn, int64_t begin, int64_t end) {
  return p.op("reduce", {v},
              {orr::text_attr("fn", fn), orr::int_attr("begin", begin), orr::int_attr("end", end)});
}

// Both ends are read, so that no tensor of sizes is written.
static orr::Value sizes_of_blocks(const orr::Program& p, int32_t v, int64_t dim) {
  std::vector<int64_t> dims = p.dims(v);
  const auto at = dims.begin() + dim;
  *at /= kBlocks;
  dims.insert(at, kBlocks);
  const orr::Value x = p.reshape(v, dims);
  const orr::Value high = p.cast(reduced(p, x, "max", dim + 1, dim + 2), ORR_F32),
                   low = p.cast(reduced(p, x, "min", dim + 1, dim + 2), ORR_F32);
  return larger(p, high, p.pointwise(ORR_FN_NEG, {low}));
}

orr::Value sample_sizes(const orr::Program& p, int32_t v) {
  const auto rank = static_cast<int64_t>(p.dims(v).size());
  orr::Value sizes = sizes_of_blocks(p, v, rank - 1);
  if (rank > 2) sizes = reduced(p, sizes, "max", 1, rank - 1);
  return reduced(p, sizes, "max", 1, 2);
}

namespace {

// The largest number of all samples of the microbatch, in the dims of x.
orr::Value largest_of_microbatch(const orr::Program& p, orr::Value x) {
  return p.op("microbatch_sum", {x}, {orr::text_attr("fn", "max")});
}

orr::Value largest_along(const orr::Program& p, int32_t v, int64_t dim) {
  std::vector<int64_t> dims = p.dims(v);
  dims[static_cast<size_t>(dim)] = 1;
  return p.reshape(reduced(p, sizes_of_blocks(p, v, dim), "max", dim, dim + 1), dims);
}

orr::Value of_samples(const orr::Program& p, int32_t v) {
  std::vector<int64_t> dims = p.dims(v);
  std::fill(dims.begin() + 1, dims.end(), 1);
  return largest_of_microbatch(p, p.reshape(sample_sizes(p, v), dims));
}

orr::Value of_matrix(const orr::Program& p, int32_t v) {
  const orr::Value columns =
      p.reshape(sizes_of_blocks(p, v, 1), {kBlocks, p.dims(v)[0] / kBlocks, kBlocks});
  return reduced(p, reduced(p, columns, "max", 1, 2), "max", 0, 2);
}

}  // namespace

orr::Value largest_size(const orr::Program& p, int32_t v, Over over, int32_t summed) {
  if (over == Over::rows) return largest_along(p, v, summed);
  return p.info(v).batch == ORR_BATCH_SAMPLES ? of_samples(p, v) : of_matrix(p, v);
}

// Rump, "Error estimation of floating-point summation and dot product", 2012: rounding keeps only
// the leading bit of the difference.
orr::Value leading_power(orr::Value x) {
  const orr::Value far = x * (0x1p23 + 1);
  return far - far * (1 - 0x1p-24);
}

orr::Value fitting_power(const orr::Program& p, orr::Value size) {
  const orr::Value x = larger(p, size, kSmallest), unit = leading_power(x);
  const orr::Value fits = p.pointwise(ORR_FN_LE, {x, unit * kLargest});
  return p.pointwise(ORR_FN_SELECT, {fits, unit, unit * 2.0});
}

orr::Value scale_for(const orr::Program& p, orr::Value size, const Format& format) {
  return p.div(format.top, fitting_power(p, size));
}

orr::Value narrowed(const orr::Program& p, int32_t v, orr::Value scale, const Format& format) {
  return p.cast(p.cast(v, ORR_F32) * scale, format.dtype);
}

orr::Value narrowed_within(const orr::Program& p, int32_t v, orr::Value scale,
                           const Format& format) {
  const double most = kLargest * format.top;
  const orr::Value x = larger(p, p.cast(v, ORR_F32) * scale, -most);
  return p.cast(p.pointwise(ORR_FN_MIN, {x, most}), format.dtype);
}

orr::Value unscaled(const orr::Program& p, int32_t v, const std::vector<orr::Value>& scales) {
  orr::Value y = p.cast(v, ORR_F32);
  for (const orr::Value& scale : scales) y = y * p.div(1.0, scale);
  return p.cast(y, p.type(v).dtype);
}

}  // namespace precision
