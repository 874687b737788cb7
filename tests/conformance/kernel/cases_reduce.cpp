// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>

#include "conformance/kernel/cases.h"

namespace kernel_suite {

std::vector<Values> reduce_oracle(const Case& c, const std::vector<Values>& x) {
  int64_t outer = c.in[0].dims[0], k = c.in[0].dims[1], inner = c.in[0].dims[2];
  const std::string& fn = c.attrs[0].text;
  const bool adds = fn == "sum" || fn == "sumsq";
  Values y;
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < inner; ++i) {
      double total = adds ? 0 : x[0][size_t(o * k * inner + i)];
      for (int64_t p = 0; p < k; ++p) {
        double v = x[0][size_t((o * k + p) * inner + i)];
        if (adds)
          total += fn == "sum" ? v : v * v;
        else if (std::isnan(v) || std::isnan(total))
          total = NAN;
        else
          total = fn == "max" ? std::max(total, v) : std::min(total, v);
      }
      y.push_back(total);
    }
  return {y};
}

namespace {

Case reduce(int32_t dtype, const std::string& fn, int64_t o, int64_t k, int64_t i) {
  Case c;
  c.kind = "reduce";
  c.note = fn + shape_note({o, k, i});
  c.in = {tensor(dtype, {o, k, i})};
  c.out = {tensor(dtype, {o, i})};
  c.attrs = {text("fn", fn)};
  c.oracle = reduce_oracle;
  c.exact = true;
  c.depth = double(k) + 1;
  return c;
}

std::vector<Values> each_oracle(const Case& c, const std::vector<Values>& x) {
  std::vector<Values> all;
  for (const Values& v : x) {
    double total = 0;
    for (double e : v) total += c.attrs[0].text == "sum" ? e : e * e;
    all.push_back({total});
  }
  return all;
}

Case reduce_each(int32_t dtype, const std::string& fn, const std::vector<int64_t>& lengths) {
  Case c;
  c.kind = "reduce_each";
  c.note = fn + std::to_string(lengths.size());
  for (int64_t n : lengths) c.in.push_back(tensor(dtype, {n})), c.out.push_back(tensor(dtype, {}));
  c.attrs = {text("fn", fn)};
  c.oracle = each_oracle;
  c.exact = true;
  c.depth = double(*std::max_element(lengths.begin(), lengths.end())) + 1;
  return c;
}

// Indices of a row in descending order, ties by index.
std::vector<int64_t> ranking(const double* row, int64_t n) {
  std::vector<int64_t> order(size_t(n), 0);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return row[a] > row[b]; });
  return order;
}

std::vector<Values> best_oracle(const Case& c, const std::vector<Values>& x) {
  int64_t rows = c.in[0].dims[0], n = c.in[0].dims[1], k = c.attr("k", 1);
  Values value, index;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t j = 0; j < k; ++j) {
      int64_t at = ranking(x[0].data() + r * n, n)[size_t(j)];
      value.push_back(x[0][size_t(r * n + at)]);
      index.push_back(double(at));
    }
  if (c.kind == "argmax") return {index};
  return {value, index};
}

Case argmax(int32_t dtype, int64_t rows, int64_t n) {
  Case c;
  c.kind = "argmax";
  c.note = shape_note({rows, n});
  c.in = {tensor(dtype, {rows, n})};
  c.out = {tensor(ORR_I64, {rows})};
  c.oracle = best_oracle;
  c.exact = true;
  if (rows == 256) c.axes = {{{0}, {0}}};
  return c;
}

Case topk(int32_t dtype, int64_t rows, int64_t n, int64_t k) {
  Case c = argmax(dtype, rows, n);
  c.kind = "topk";
  c.note += "k" + std::to_string(k);
  c.out = {tensor(dtype, {rows, k}), tensor(ORR_I64, {rows, k})};
  c.attrs = {integer("k", k)};
  if (rows == 256) c.axes = {{{0}, {0, 0}}};
  return c;
}

// With gaps between the rows of x.
Case apart(Case c) {
  orr_tensor& x = c.in[0];
  const int32_t last = x.rank - 1;
  int64_t step = x.dims[last] + 7;
  for (int32_t d = last; d-- > 0; step *= x.dims[d]) x.strides[d] = step;
  c.note += "_apart";
  return c;
}

void add_sums(int32_t dtype, std::vector<Case>& cases) {
  for (int64_t k : {0, 1, 15, 16, 17, 1023, 1024, 1025, 2049, 3073})
    cases.push_back(reduce(dtype, "sum", 2, k, 1));
  for (int64_t k : {0, 1, 63, 64, 65, 129, 193}) cases.push_back(reduce(dtype, "sum", 2, k, 70));
  for (int64_t i : {2, 17, 255}) cases.push_back(reduce(dtype, "sum", 1, 66, i));
  Case rows = reduce(dtype, "sum", 256, 33, 1), columns = reduce(dtype, "sum", 256, 70, 3);
  rows.axes = columns.axes = {{{0}, {0}}};
  Case leaves = reduce(dtype, "sum", 1, 70, 35), scalar = reduce(dtype, "sum", 1, 1030, 1);
  leaves.leaf_in = scalar.leaf_in = {1};
  leaves.note += "leaves", scalar.note += "leaves";
  for (const Case& sums : {rows, columns, leaves, scalar, apart(columns), apart(leaves)}) {
    cases.push_back(sums);
    for (const Case& c : stored_otherwise(sums, dtype)) cases.push_back(c);
  }
}

}  // namespace

std::vector<Case> reduce_cases() {
  std::vector<Case> cases;
  std::vector<int32_t> numbers = {ORR_F32, ORR_F64, ORR_BF16, ORR_F16, ORR_I32, ORR_I64};
  for (int32_t dtype : numbers) {
    add_sums(dtype, cases);
    for (int64_t k : {0, 17, 1025, 2049}) cases.push_back(reduce(dtype, "sumsq", 2, k, 1));
    for (int64_t k : {1, 65})
      for (int64_t inner : {70, 528}) cases.push_back(reduce(dtype, "sumsq", 2, k, inner));
    for (const char* fn : {"max", "min"})
      for (int64_t inner : {1, 5})
        for (int64_t k : {1, 2, 31, 1025}) cases.push_back(reduce(dtype, fn, 3, k, inner));
    for (int64_t rows : {1, 256}) {
      for (int64_t n : {1, 17, 300}) cases.push_back(argmax(dtype, rows, n));
      cases.push_back(topk(dtype, rows, 33, 1));
      cases.push_back(topk(dtype, rows, 33, 5));
      cases.push_back(topk(dtype, rows, 4, 4));
      cases.push_back(topk(dtype, rows, 300, 70));
      cases.push_back(apart(topk(dtype, rows, 300, 5)));
      cases.push_back(apart(argmax(dtype, rows, 17)));
    }
  }
  for (int32_t dtype : kReals)
    for (const char* fn : {"max", "min"}) {
      Case nan = reduce(dtype, fn, 1, 4, 2);
      nan.note += "nan";
      nan.fills = {values({1, 2, NAN, 3, 5, -HUGE_VAL, 0, HUGE_VAL})};
      cases.push_back(nan);
    }
  for (int32_t dtype : kReals) {
    cases.push_back(reduce_each(dtype, "sumsq", {7, 0, 1025, 1, 9000}));
    cases.push_back(reduce_each(dtype, "sum", std::vector<int64_t>(130, 3)));
  }
  return cases;
}

}  // namespace kernel_suite
