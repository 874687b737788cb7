// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "conformance/kernel/cases.h"

namespace kernel_suite {
namespace {

double row_lse(const Values& x, int64_t classes, size_t row) {
  double sum = 0, top = x[row * size_t(classes)];
  for (int64_t j = 0; j < classes; ++j) top = std::max(top, x[row * size_t(classes) + size_t(j)]);
  for (int64_t j = 0; j < classes; ++j) sum += std::exp(x[row * size_t(classes) + size_t(j)] - top);
  return top + std::log(sum);
}

std::vector<Values> forward(const Case& c, const std::vector<Values>& x) {
  int64_t rows = c.in[0].dims[0], classes = c.in[0].dims[1];
  Values loss, lse;
  for (size_t r = 0; r < size_t(rows); ++r) {
    lse.push_back(row_lse(x[0], classes, r));
    bool counts = x[2][r] != 0;
    loss.push_back(counts ? x[2][r] * (lse[r] - x[0][r * size_t(classes) + size_t(x[1][r])]) : 0);
  }
  return {loss, lse};
}

std::vector<Values> grad(const Case& c, const std::vector<Values>& x) {
  int64_t rows = c.in[1].dims[0], classes = c.in[1].dims[1];
  Values dx;
  for (size_t r = 0; r < size_t(rows); ++r)
    for (int64_t j = 0; j < classes; ++j) {
      double p = std::exp(x[1][r * size_t(classes) + size_t(j)] - x[4][r]);
      dx.push_back(x[3][r] == 0 ? 0 : x[0][r] * x[3][r] * (p - (double(j) == x[2][r])));
    }
  return {dx};
}

// Every third row is padding: weight 0 and a label that is no class.
void pad(std::vector<Values>& x, size_t labels, size_t weights) {
  for (size_t r = 2; r < x[labels].size(); r += 3) x[weights][r] = 0, x[labels][r] = -100;
}

void pad_forward(const Case&, std::vector<Values>& x) { pad(x, 1, 2); }

void pad_grad(const Case& c, std::vector<Values>& x) {
  pad(x, 2, 3);
  for (size_t r = 0; r < x[4].size(); ++r) x[4][r] = row_lse(x[1], c.in[1].dims[1], r);
}

Case cross_entropy(int32_t dtype, int32_t labels, int64_t rows, int64_t classes) {
  Case c;
  c.kind = "cross_entropy";
  c.note = std::string(dtype_name(labels)) + "_" + shape_note({rows, classes});
  c.in = {tensor(dtype, {rows, classes}), tensor(labels, {rows}), tensor(wide(dtype), {rows})};
  c.out = {tensor(wide(dtype), {rows}), tensor(wide(dtype), {rows})};
  c.fills = {normal(), below_extent(0, 1), positive()};
  c.derive = pad_forward;
  c.oracle = forward;
  c.depth = double(classes);
  if (rows == 256) c.axes = {{{0, 0, 0}, {0, 0}}};
  return c;
}

// With gaps between the rows of logits.
Case apart(Case c, int64_t step) {
  const orr_tensor& x = c.in[0];
  c.in[0] = strided(x.dtype, {x.dims[0], x.dims[1]}, {step, 1});
  c.note += "_step" + std::to_string(step);
  return c;
}

Case cross_entropy_grad(const Case& f) {
  Case c = f;
  c.kind = "cross_entropy_grad";
  c.in = {f.out[0], f.in[0], f.in[1], f.in[2], f.out[1]};
  c.out = {f.in[0]};
  c.note += std::string("_") + dtype_name(f.in[0].dtype);
  c.fills = {normal(), normal(), below_extent(1, 1), positive(), normal()};
  c.derive = pad_grad;
  c.oracle = grad;
  for (Axis& a : c.axes) a = {{0, 0, 0, 0, 0}, {0}};
  return c;
}

std::vector<Values> forward_and_grad(const Case& c, const std::vector<Values>& x) {
  std::vector<Values> all = forward(c, x);
  Case slope = c;
  slope.in = {c.in[3], c.in[0], c.in[1], c.in[2], c.out[1]};
  all.push_back(grad(slope, {x[3], x[0], x[1], x[2], all[1]})[0]);
  return all;
}

// Both at once.
Case with_grad(const Case& f) {
  Case c = f;
  c.in.push_back(f.out[0]), c.out.push_back(f.in[0]);
  c.note += std::string("_and_grad_") + dtype_name(f.in[0].dtype);
  c.fills.push_back(normal());
  c.oracle = forward_and_grad;
  for (Axis& a : c.axes) a = {{0, 0, 0, 0}, {0, 0, 0}};
  return c;
}

}  // namespace

std::vector<Case> cross_entropy_cases() {
  std::vector<Case> cases;
  for (int32_t dtype : kReals)
    for (int32_t labels : kIntegers) {
      for (int64_t classes : {1, 2, 10, 65, 1025})
        cases.push_back(cross_entropy(dtype, labels, 7, classes));
      cases.push_back(cross_entropy(dtype, labels, 1, 33));
      cases.push_back(cross_entropy(dtype, labels, 0, 33));
      cases.push_back(cross_entropy(dtype, labels, 256, 37));
      for (int64_t step : {67, 128})
        cases.push_back(apart(cross_entropy(dtype, labels, 7, 65), step));
    }
  for (size_t i = cases.size(); i-- > 0;) {
    cases.push_back(cross_entropy_grad(cases[i]));
    cases.push_back(with_grad(cases[i]));
  }
  return cases;
}

}  // namespace kernel_suite
