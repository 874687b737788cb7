// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "check/kernel/cases.h"

namespace kernel_suite {
namespace {

std::vector<Values> oracle(const Case& c, const std::vector<Values>& x) {
  int64_t groups = c.in[0].dims[0], m = c.in[0].dims[1], k = c.in[0].dims[2], n = c.in[1].dims[2];
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

}  // namespace

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
    for (const Case& c : {rows, columns, groups, leaves, thin}) cases.push_back(c);
    for (const Case& sums :
         {matmul(dtype, 1, 70, 96, 300, "tn"), matmul(dtype, 1, 2, 33, 40, "nn"), columns, leaves})
      for (const Case& c : stored_otherwise(sums, dtype)) cases.push_back(c);
  }
  return cases;
}

}  // namespace kernel_suite
