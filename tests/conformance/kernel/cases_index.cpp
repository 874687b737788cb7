// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "conformance/kernel/cases.h"

namespace kernel_suite {
namespace {

std::vector<Values> gather_oracle(const Case& c, const std::vector<Values>& x) {
  Values y;
  int64_t n = c.in[0].dims[1];
  for (double index : x[1])
    for (int64_t j = 0; j < n; ++j) y.push_back(x[0][size_t(int64_t(index) * n + j)]);
  return {y};
}

std::vector<Values> scatter_oracle(const Case& c, const std::vector<Values>& x) {
  int64_t n = c.in[1].dims[1];
  Values y = c.in.size() == 3 ? x[2] : Values(size_t(c.attr("rows", 0) * n));
  for (size_t i = 0; i < x[0].size(); ++i)
    for (int64_t j = 0; j < n; ++j)
      y[size_t(int64_t(x[0][i]) * n + j)] += x[1][size_t(int64_t(i) * n + j)];
  return {y};
}

std::vector<Values> slice_oracle(const Case& c, const std::vector<Values>& x) {
  return {part(c.in[0], x[0], 1, int64_t(x[1][0]), c.out[0].dims[1])};
}

std::vector<Values> update_oracle(const Case& c, const std::vector<Values>& x) {
  const int64_t *whole = c.in[0].dims, *piece = c.in[1].dims;
  Values y = x[0];
  for (int64_t o = 0; o < piece[0]; ++o)
    for (int64_t d = 0; d < piece[1]; ++d)
      for (int64_t i = 0; i < piece[2]; ++i)
        y[size_t((o * whole[1] + d + int64_t(x[2][0])) * whole[2] + i)] =
            x[1][size_t((o * piece[1] + d) * piece[2] + i)];
  return {y};
}

std::vector<Values> iota_oracle(const Case& c, const std::vector<Values>&) {
  Values y;
  for (int64_t i = 0; i < c.out[0].dims[0]; ++i) y.push_back(double(c.attr("start", 0) + i));
  return {y};
}

std::vector<Values> categorical_oracle(const Case& c, const std::vector<Values>& x) {
  size_t rows = size_t(c.in[0].dims[0]), n = size_t(c.in[0].dims[1]);
  Values y;
  for (size_t r = 0; r < rows; ++r) {
    double total = 0, running = 0;
    for (size_t j = 0; j < n; ++j) total += std::exp(x[0][r * n + j]);
    double u = orr_uniform(uint64_t(x[1][0]), uint32_t(c.attr("rng_id", 0)), uint32_t(x[2][0]),
                           uint64_t(x[3][0]) + r);
    size_t chosen = 0;
    while ((running += std::exp(x[0][r * n + chosen])) <= u * total) ++chosen;
    y.push_back(double(chosen));
  }
  return {y};
}

Case gather(int32_t dtype, int32_t index, int64_t rows, int64_t n, int64_t columns) {
  Case c;
  c.kind = "gather";
  c.note = std::string(dtype_name(index)) + "_" + shape_note({rows, n, columns});
  c.in = {tensor(dtype, {rows, columns}), tensor(index, {n})};
  c.out = {tensor(dtype, {n, columns})};
  c.fills = {normal(), below_extent(0, 0)};
  c.oracle = gather_oracle;
  c.exact = true;
  if (n == 256) c.axes = {{{-1, 0}, {0}}};
  return c;
}

Case scatter(int32_t dtype, int32_t index, int64_t rows, int64_t n, int64_t columns) {
  Case c;
  c.kind = "scatter_add";
  c.note = std::string(dtype_name(dtype)) + "_" + shape_note({rows, n, columns});
  c.in = {tensor(index, {n}), tensor(dtype, {n, columns})};
  c.out = {tensor(dtype, {rows, columns})};
  c.attrs = {integer("rows", rows)};
  c.fills = {below_extent(2, 0), normal()};
  c.oracle = scatter_oracle;
  c.exact = true;
  c.depth = double(n) + 1;
  return c;
}

Case scatter_onto(const Case& s) {
  Case c = s;
  c.note += "base";
  c.in.push_back(s.out[0]);
  c.fills = {below_extent(2, 0), normal(), normal()};
  return c;
}

Case slice_at(int32_t dtype, int64_t o, int64_t d, int64_t i, int64_t n, int64_t at) {
  Case c;
  c.kind = "slice_at";
  c.note = shape_note({o, d, i, n, at});
  c.in = {tensor(dtype, {o, d, i}), tensor(ORR_I64, {})};
  c.out = {tensor(dtype, {o, n, i})};
  c.fills = {normal(), values({double(at)})};
  c.oracle = slice_oracle;
  c.exact = true;
  if (o == 256) c.axes = {{{0, -1}, {0}}};
  return c;
}

Case update_slice(const Case& s) {
  Case c = s;
  c.kind = "update_slice";
  c.in = {s.in[0], s.out[0], s.in[1]};
  c.out = {s.in[0]};
  c.fills = {normal(), normal(), s.fills[1]};
  c.oracle = update_oracle;
  for (Axis& a : c.axes) a = {{0, 0, -1}, {0}};
  return c;
}

Case iota(int32_t dtype, int64_t n, int64_t start) {
  Case c;
  c.kind = "iota";
  c.note = shape_note({n, start});
  c.out = {tensor(dtype, {n})};
  c.attrs = {integer("start", start)};
  c.oracle = iota_oracle;
  c.exact = true;
  return c;
}

Case categorical(int32_t dtype, int64_t rows, int64_t n) {
  Case c;
  c.kind = "categorical";
  c.note = shape_note({rows, n});
  orr_tensor scalar = tensor(ORR_I64, {});
  c.in = {tensor(dtype, {rows, n}), scalar, scalar, scalar};
  c.out = {tensor(ORR_I64, {rows})};
  c.attrs = {integer("rng_id", 77)};
  c.fills = {normal(), values({1234567}), values({9}), values({1000})};
  c.oracle = categorical_oracle;
  if (rows == 256) c.axes = {{{0, -1, -1, -1}, {0}, true}};
  return c;
}

}  // namespace

std::vector<Case> index_cases() {
  std::vector<Case> cases;
  for (int32_t dtype : kAll) {
    for (int32_t index : kIntegers)
      for (int64_t n : {0, 1, 33, 256}) cases.push_back(gather(dtype, index, 17, n, 9));
    for (Case& c :
         std::vector<Case>{slice_at(dtype, 2, 7, 3, 2, 4), slice_at(dtype, 1, 5, 1, 5, 0),
                           slice_at(dtype, 3, 64, 33, 1, 63), slice_at(dtype, 1, 4, 2, 0, 4),
                           slice_at(dtype, 256, 5, 3, 2, 1)})
      cases.push_back(c), cases.push_back(update_slice(c));
    if (dtype == ORR_BOOL) continue;
    for (int64_t n : {0, 1, 129}) cases.push_back(iota(dtype, n, 3));
    if (dtype == ORR_U8) continue;
    for (int64_t n : {0, 1, 65, 257}) cases.push_back(scatter(dtype, ORR_I32, 5, n, 67));
    cases.push_back(scatter(dtype, ORR_I64, 300, 40, 1));
    Case leaves = scatter(dtype, ORR_I64, 4, 9, 33);
    leaves.note += "leaves";
    leaves.leaf_in = {0, 0};
    const Case onto = scatter_onto(scatter(dtype, ORR_I32, 100, 65, 67));
    for (const Case& sums : {leaves, onto}) {
      cases.push_back(sums);
      for (const Case& c : stored_otherwise(sums, dtype)) cases.push_back(c);
    }
  }
  for (int32_t dtype : kReals)
    for (int64_t rows : {1, 256})
      for (int64_t n : {1, 10, 65}) cases.push_back(categorical(dtype, rows, n));
  return cases;
}

}  // namespace kernel_suite
