// SPDX-License-Identifier: Apache-2.0
//
// gather_matmul and scatter_matmul: matrices that no row chooses, one that all do, rows of none.
#include "conformance/kernel/cases.h"

namespace kernel_suite {
namespace {

std::vector<Values> gather_oracle(const Case& c, const std::vector<Values>& x) {
  const int64_t n = c.in[0].dims[0], d = c.in[0].dims[1], f = c.out[0].dims[1];
  Values y;
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < f; ++j) {
      const auto e = int64_t(x[2][size_t(i)]);
      double sum = 0;
      for (int64_t k = 0; k < d && e >= 0; ++k)
        sum += x[0][size_t(i * d + k)] * x[1][size_t((e * d + k) * f + j)];
      y.push_back(sum);
    }
  return {y};
}

std::vector<Values> scatter_oracle(const Case& c, const std::vector<Values>& x) {
  const int64_t n = c.in[0].dims[0], d = c.in[0].dims[1], f = c.in[1].dims[1];
  Values y(size_t(c.attr("matrices", 0) * d * f));
  for (int64_t i = 0; i < n; ++i)
    if (const auto e = int64_t(x[2][size_t(i)]); e >= 0)
      for (int64_t k = 0; k < d; ++k)
        for (int64_t j = 0; j < f; ++j)
          y[size_t((e * d + k) * f + j)] += x[0][size_t(i * d + k)] * x[1][size_t(i * f + j)];
  return {y};
}

// How rows choose among e matrices: all of them and none in turns, but for matrix 1; or one alone.
enum class Choice { some, one, none };

void choose(Values& index, int64_t e, Choice how) {
  for (size_t i = 0; i < index.size(); ++i) {
    const int64_t at = int64_t(i * 7 + i / 5) % (e + 1) - 1;
    index[i] = how == Choice::none  ? -1
               : how == Choice::one ? double(e - 1)
                                    : double(at == 1 ? 0 : at);
  }
}

const char* name_of(Choice how) {
  return how == Choice::one ? "one" : how == Choice::none ? "none" : "";
}

Case gather(int32_t dtype, int32_t index, int64_t n, int64_t e, int64_t d, int64_t f, bool turned,
            Choice how = Choice::some) {
  Case c;
  c.kind = "gather_matmul";
  c.note = std::string(dtype_name(index)) + "_" + shape_note({n, e, d, f}) + (turned ? "t" : "") +
           name_of(how);
  c.in = {tensor(dtype, {n, d}), tensor(dtype, {e, d, f}), tensor(index, {n})};
  if (turned) c.in[1] = strided(dtype, {e, d, f}, {d * f, 1, d});
  c.out = {tensor(dtype, {n, f})};
  c.fills = {normal(), normal(), below(1)};
  c.derive = [=](const Case&, std::vector<Values>& x) { choose(x[2], e, how); };
  c.oracle = gather_oracle;
  c.exact = true;
  c.depth = double(d) + 1;
  if (n == 256) c.axes = {{{0, -1, 0}, {0}}};
  return c;
}

Case scatter(int32_t dtype, int32_t index, int64_t n, int64_t e, int64_t d, int64_t f,
             Choice how = Choice::some) {
  Case c;
  c.kind = "scatter_matmul";
  c.note = std::string(dtype_name(index)) + "_" + shape_note({n, e, d, f}) + name_of(how);
  c.in = {tensor(dtype, {n, d}), tensor(dtype, {n, f}), tensor(index, {n})};
  c.out = {tensor(dtype, {e, d, f})};
  c.attrs = {integer("matrices", e)};
  c.fills = {normal(), normal(), below(1)};
  c.derive = [=](const Case&, std::vector<Values>& x) { choose(x[2], e, how); };
  c.oracle = scatter_oracle;
  c.exact = true;
  c.depth = double(n) + 1;
  return c;
}

}  // namespace

std::vector<Case> gather_matmul_cases() {
  std::vector<Case> cases;
  for (int32_t dtype : kReals) {
    for (bool turned : {false, true})
      for (int64_t n : {0, 1, 3, 97}) cases.push_back(gather(dtype, ORR_I32, n, 5, 33, 70, turned));
    cases.push_back(gather(dtype, ORR_I64, 256, 8, 300, 24, false));
    cases.push_back(gather(dtype, ORR_I64, 256, 8, 64, 128, true));
    cases.push_back(gather(dtype, ORR_I32, 40, 130, 16, 16, false));
    for (Choice how : {Choice::one, Choice::none}) {
      cases.push_back(gather(dtype, ORR_I32, 150, 4, 24, 40, false, how));
      cases.push_back(scatter(dtype, ORR_I32, 300, 4, 24, 40, how));
    }
    for (int64_t n : {0, 1, 3, 97}) cases.push_back(scatter(dtype, ORR_I32, n, 5, 33, 70));
    cases.push_back(scatter(dtype, ORR_I64, 40, 130, 16, 16));
    cases.push_back(scatter(dtype, ORR_I32, 20, 1, 1, 3));
    // Of one matrix there are more rows than a block of a sum has.
    Case leaves = scatter(dtype, ORR_I64, 3 * 301, 3, 17, 40);
    leaves.note += "leaves";
    leaves.leaf_in = {0, 0, 0};
    cases.push_back(leaves);
    for (const Case& c : stored_otherwise(leaves, dtype)) cases.push_back(c);
  }
  return cases;
}

}  // namespace kernel_suite
