// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "conformance/kernel/cases.h"
#include "conformance/kernel/pointwise_oracle.h"

namespace kernel_suite {
namespace {

std::vector<Values> oracle(const Case& c, const std::vector<Values>& x) {
  // Also of operands of more dims: their elements come in the order of the matrix.
  const orr_tensor& out = c.out[0];
  int64_t groups = c.in[0].dims[0], m = out.dims[out.rank - 2], n = out.dims[out.rank - 1],
          k = groups * m > 0 ? elements(c.in[0]) / (groups * m) : 0;
  Values y;
  for (int64_t g = 0; g < groups; ++g)
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (int64_t p = 0; p < k; ++p)
          sum += x[0][size_t((g * m + i) * k + p)] * x[1][size_t((g * k + p) * n + j)];
        y.push_back(sum);
      }
  return {y};
}

// A matmul_pointwise is its two ops.
std::vector<Values> oracle_of_two(const Case& c, const std::vector<Values>& x) {
  Values product = oracle(c, {x[0], x[1]})[0];
  for (double& y : product) y = rounded(matmul_of(c).out[0].dtype, y);
  std::vector<Values> inputs{product};
  inputs.insert(inputs.end(), x.begin() + 2, x.end());
  return pointwise_oracle(pointwise_of(c), inputs);
}

Case matmul(int32_t dtype, int64_t g, int64_t m, int64_t n, int64_t k, const std::string& layout) {
  Case c;
  c.kind = "matmul";
  c.note = shape_note({g, m, n, k}) + layout;
  c.in = {tensor(dtype, {g, m, k}), tensor(dtype, {g, k, n})};
  if (layout == "nt") c.in[1] = strided(dtype, {g, k, n}, {k * n, 1, k});
  if (layout == "tn") c.in[0] = strided(dtype, {g, m, k}, {m * k, 1, m});
  if (layout == "shared") c.in[1] = strided(dtype, {g, k, n}, {0, n, 1});
  if (layout == "padded") c.in[0] = strided(dtype, {g, m, k}, {m * (k + 3), k + 3, 1});
  c.out = {tensor(dtype, {g, m, n})};
  c.oracle = oracle;
  c.exact = true;
  c.depth = double(k) + 1;
  return c;
}

// Rows of an odd number of elements that lie further apart: of y, of a, of a turned a.
std::vector<Case> padded_rows(int32_t dtype) {
  Case columns = matmul(dtype, 1, 256, 301, 40, "nt"), terms = matmul(dtype, 1, 9, 24, 301, "nn"),
       rows = matmul(dtype, 1, 301, 24, 70, "tn");
  columns.out[0] = strided(dtype, {1, 256, 301}, {256 * 304, 304, 1});
  columns.axes = {{{1, -1}, {1}}};
  terms.in[0] = strided(dtype, {1, 9, 301}, {9 * 304, 304, 1});
  rows.in[0] = strided(dtype, {1, 301, 70}, {70 * 304, 1, 304});
  std::vector<Case> all = {columns, terms, rows};
  for (Case& c : all) c.note += "padded_rows";
  return all;
}

// Factors of eight bits, which need not be alike, and all results that they have.
std::vector<Case> of_eight_bits() {
  std::vector<Case> all;
  for (int32_t a : kEights)
    for (int32_t b : kEights)
      for (int32_t y : {ORR_F32, ORR_BF16, ORR_F16})
        for (const char* layout : {"nn", "nt", "tn"}) {
          Case c = matmul(a, 1, 34, 48, 64, layout);
          c.in[1].dtype = b, c.out[0].dtype = y;
          c.note += std::string("_by_") + dtype_name(b) + "_in_" + dtype_name(y);
          all.push_back(c);
        }
  return all;
}

// The windows of 3 x 3 of `images` of 6 x 5 by `channels`, [rows, columns] as an operand.
orr_tensor windows(int32_t dtype, int64_t images, int64_t channels) {
  const int64_t row = 5 * channels;
  return strided(dtype, {1, images, 4, 3, 3, 3 * channels}, {0, 6 * row, row, channels, row, 1});
}

// The same of groups, which lie beside each other: `channels` are those of a group.
orr_tensor windows_of_groups(int32_t dtype, int64_t groups, int64_t images, int64_t channels) {
  const int64_t place = groups * channels, row = 5 * place;
  return strided(dtype, {groups, images, 4, 3, 3, 3, channels},
                 {channels, 6 * row, row, place, row, place, 1});
}

// A product with windows as a, and one with windows as b, as a convolution and its weight's
// gradient have them.
std::vector<Case> windowed(int32_t dtype) {
  Case forward = matmul(dtype, 1, 8 * 12, 20, 9 * 7, "nt"),
       weight = matmul(dtype, 1, 5, 9 * 6, 24, "tn");
  forward.in[0] = windows(dtype, 8, 7), forward.note += "windows";
  weight.in[1] = windows(dtype, 2, 6), weight.note += "windows";
  Case groups = matmul(dtype, 3, 8 * 12, 20, 9 * 7, "nt"),
       of_groups = matmul(dtype, 3, 5, 9 * 6, 24, "tn");
  groups.in[0] = windows_of_groups(dtype, 3, 8, 7), groups.note += "windows";
  of_groups.in[1] = windows_of_groups(dtype, 3, 2, 6), of_groups.note += "windows";
  return {forward, weight, groups, of_groups};
}

// A matmul and an expression of its product, instruction by instruction.
struct Both {
  Case c;
  orr_tensor y;   // the product
  int32_t dtype;  // of the product and of what follows

  Both(const Case& product, const std::string& note)
      : c(product), y(product.out[0]), dtype(y.dtype) {
    c.kind = "matmul_pointwise", c.oracle = oracle_of_two, c.out.clear();
    c.note += "_" + note;
    op(ORR_FN_INPUT, 0);
  }
  int op(int32_t fn, int a, int b = 0) {
    c.instrs.push_back({fn, dtype, a, b, 0, 0, 0});
    return int(c.instrs.size()) - 1;
  }
  // Repeated along the dims in which its stride is 0.
  int input(std::vector<int64_t> strides) {
    c.in.push_back(strided(dtype, {y.dims[0], y.dims[1], y.dims[2]}, std::move(strides)));
    return op(ORR_FN_INPUT, int(c.in.size()) - 2);
  }
  int whole() { return input({y.dims[1] * y.dims[2], y.dims[2], 1}); }
  int bias() { return input({0, 0, 1}); }
  void store(int reg) {
    c.stored.push_back(reg);
    c.out.push_back(tensor(dtype, {y.dims[0], y.dims[1], y.dims[2]}));
  }
};

// What follows products in a model and its gradient.
std::vector<Case> followed(const Case& product) {
  Both biased(product, "bias"), added(product, "added"), residue(product, "residue"),
      gelu(product, "gelu"), kept(product, "kept"), slope(product, "slope"),
      scaled(product, "scaled");
  biased.store(biased.op(ORR_FN_ADD, 0, biased.bias()));
  added.store(added.op(ORR_FN_ADD, added.whole(), 0));
  const int with_bias = residue.op(ORR_FN_ADD, 0, residue.bias());
  residue.store(residue.op(ORR_FN_ADD, with_bias, residue.whole()));
  const int before = gelu.op(ORR_FN_ADD, 0, gelu.bias());
  gelu.store(before), gelu.store(gelu.op(ORR_FN_GELU, before));
  gelu.c.exact = false;
  kept.store(kept.op(ORR_FN_MUL, 0, 0)), kept.store(0);
  slope.store(slope.op(ORR_FN_MUL, 0, slope.op(ORR_FN_GELU_GRAD, slope.whole())));
  slope.c.exact = false;
  const int by_row = scaled.op(ORR_FN_MUL, 0, scaled.input({product.in[0].dims[1], 1, 0}));
  scaled.store(scaled.op(ORR_FN_SUB, scaled.input({0, 0, 0}), by_row));
  return {biased.c, added.c, residue.c, gelu.c, kept.c, slope.c, scaled.c};
}

}  // namespace

Case matmul_of(const Case& both) {
  Case c = both;
  c.kind = "matmul", c.in.resize(2), c.out.resize(1), c.instrs.clear(), c.stored.clear();
  c.oracle = oracle;
  for (const orr_instr& i : both.instrs)
    if (i.fn == ORR_FN_INPUT && i.a == 0) c.out[0].dtype = i.dtype;
  return c;
}

Case pointwise_of(const Case& both) {
  Case c = both;
  c.kind = "pointwise", c.oracle = pointwise_oracle;
  c.in.erase(c.in.begin(), c.in.begin() + 2);
  c.in.insert(c.in.begin(), matmul_of(both).out[0]);
  return c;
}

std::vector<Case> matmul_pointwise_cases() {
  std::vector<Case> cases;
  for (int32_t dtype : kReals) {
    const Case nt = matmul(dtype, 1, 37, 45, 70, "nt"), deep = matmul(dtype, 1, 19, 150, 300, "nn"),
               few = matmul(dtype, 1, 2, 33, 40, "nt"), thin = matmul(dtype, 1, 40, 3, 16, "nn"),
               groups = matmul(dtype, 3, 13, 40, 37, "shared"),
               even = matmul(dtype, 1, 24, 40, 32, "nn");
    for (const Case& product : {nt, deep, few, thin, groups, even})
      for (Case& c : followed(product)) cases.push_back(std::move(c));
    Both rows(matmul(dtype, 1, 256, 70, 300, "tn"), "rows");
    rows.store(rows.op(ORR_FN_ADD, rows.op(ORR_FN_ADD, 0, rows.bias()), rows.whole()));
    rows.c.axes = {{{1, -1, 1, 1}, {1}}};
    cases.push_back(rows.c);
    Case biased = followed(matmul(dtype, 1, 256, 72, 300, "nn"))[0];
    biased.axes = {{{1, -1, 1}, {1}}};
    cases.push_back(biased);
    cases.push_back(followed(matmul(dtype, 1, 0, 40, 4, "nn"))[0]);
    for (Case& product : stored_otherwise(nt, dtype)) cases.push_back(followed(product)[0]);
    for (const Case& product : windowed(dtype)) cases.push_back(followed(product)[0]);
  }
  return cases;
}

std::vector<Case> matmul_cases() {
  std::vector<Case> cases;
  for (int32_t dtype : kReals) {
    for (int64_t k : {1, 7, 64, 255, 256, 257, 513})
      cases.push_back(matmul(dtype, 1, 5, 6, k, "nn"));
    for (int64_t m : {1, 2, 3, 63, 65}) cases.push_back(matmul(dtype, 1, m, 33, 40, "nt"));
    for (int64_t n : {1, 2, 15, 17, 129}) cases.push_back(matmul(dtype, 1, 19, n, 31, "tn"));
    for (const char* layout : {"nn", "nt", "tn", "shared", "padded"})
      cases.push_back(matmul(dtype, 3, 13, 18, 37, layout));
    cases.push_back(matmul(dtype, 1, 0, 4, 4, "nn"));
    cases.push_back(matmul(dtype, 1, 3, 4, 0, "nn"));
    Case rows = matmul(dtype, 1, 256, 70, 300, "nn");
    rows.axes = {{{1, -1}, {1}}};
    Case columns = matmul(dtype, 1, 9, 256, 300, "nt");
    columns.axes = {{{-1, 2}, {2}}};
    Case groups = matmul(dtype, 256, 4, 9, 5, "tn");
    groups.axes = {{{0, 0}, {0}}};
    Case leaves = matmul(dtype, 1, 6, 35, 300, "tn");
    leaves.note += "leaves";
    leaves.leaf_in = {2, 1};
    Case thin = leaves;
    thin.in[0] = tensor(dtype, {1, 6, 2}), thin.in[1] = tensor(dtype, {1, 2, 35});
    thin.note = "thin_leaves", thin.depth = 2;
    Case leaves_of_groups = matmul(dtype, 3, 6, 35, 300, "tn");
    leaves_of_groups.note += "leaves", leaves_of_groups.leaf_in = {2, 1};
    for (const Case& c : {rows, columns, groups, leaves, leaves_of_groups, thin})
      cases.push_back(c);
    for (const Case& c : windowed(dtype)) cases.push_back(c);
    for (const Case& c : padded_rows(dtype)) cases.push_back(c);
    for (const Case& sums :
         {matmul(dtype, 1, 70, 96, 300, "tn"), matmul(dtype, 1, 2, 33, 40, "nn"), columns, leaves})
      for (const Case& c : stored_otherwise(sums, dtype)) cases.push_back(c);
  }
  for (const Case& c : of_eight_bits()) cases.push_back(c);
  return cases;
}

}  // namespace kernel_suite
