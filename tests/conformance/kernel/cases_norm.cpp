// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "conformance/kernel/cases.h"

namespace kernel_suite {
namespace {

using Oracle = std::vector<Values> (*)(const Case&, const std::vector<Values>&);

// Calls f(row, begin) for each row of the first input; begin = row * C.
template <class F>
void each_row(const Case& c, F&& f) {
  for (int64_t r = 0; r < c.in[0].dims[0]; ++r) f(size_t(r), size_t(r * c.in[0].dims[1]));
}

std::vector<Values> softmax(const Case& c, const std::vector<Values>& x) {
  Values y(x[0].size());
  size_t n = size_t(c.in[0].dims[1]);
  each_row(c, [&](size_t, size_t at) {
    double top = *std::max_element(x[0].begin() + long(at), x[0].begin() + long(at + n)), sum = 0;
    for (size_t i = at; i < at + n; ++i) sum += y[i] = std::exp(x[0][i] - top);
    for (size_t i = at; i < at + n; ++i) y[i] /= sum;
  });
  return {y};
}

std::vector<Values> softmax_grad(const Case& c, const std::vector<Values>& x) {
  Values dx(x[0].size());
  size_t n = size_t(c.in[0].dims[1]);
  each_row(c, [&](size_t, size_t at) {
    double sum = 0;
    for (size_t i = at; i < at + n; ++i) sum += x[0][i] * x[1][i];
    for (size_t i = at; i < at + n; ++i) dx[i] = x[1][i] * (x[0][i] - sum);
  });
  return {dx};
}

bool is_rms(const Case& c) { return c.kind == "rmsnorm_grad" || c.attr("rms", 0) == 1; }

std::vector<Values> layernorm_grad(const Case& c, const std::vector<Values>& x) {
  Values dx(x[0].size());
  size_t n = size_t(c.in[0].dims[1]);
  bool rms = is_rms(c);
  each_row(c, [&](size_t r, size_t at) {
    double mean = rms ? 0 : x[3][r], rstd = x[rms ? 3 : 4][r], g_mean = 0, gx_mean = 0;
    for (size_t i = 0; i < n; ++i) {
      double g = x[0][at + i] * x[2][i];
      g_mean += rms ? 0 : g / double(n);
      gx_mean += g * (x[1][at + i] - mean) * rstd / double(n);
    }
    for (size_t i = 0; i < n; ++i)
      dx[at + i] =
          rstd * (x[0][at + i] * x[2][i] - g_mean - (x[1][at + i] - mean) * rstd * gx_mean);
  });
  return {dx};
}

std::vector<Values> norm_param_grad(const Case& c, const std::vector<Values>& x) {
  size_t n = size_t(c.in[0].dims[1]);
  Values dw(n), db(n);
  bool rms = c.attr("rms", 0) == 1;
  each_row(c, [&](size_t r, size_t at) {
    for (size_t i = 0; i < n; ++i) {
      dw[i] += x[0][at + i] * (x[1][at + i] - (rms ? 0 : x[2][r])) * x[rms ? 2 : 3][r];
      db[i] += x[0][at + i];
    }
  });
  if (rms) return {dw};
  return {dw, db};
}

// The ops that it stands for.
std::vector<Values> norm_grad(const Case& c, const std::vector<Values>& x) {
  const size_t n_in = is_rms(c) ? 4 : 5, n = size_t(c.in[0].dims[1]);
  std::vector<Values> params(x.begin(), x.begin() + long(n_in));
  params.erase(params.begin() + 2);
  std::vector<Values> all = layernorm_grad(c, x);
  for (Values& v : norm_param_grad(c, params)) all.push_back(std::move(v));
  if (x.size() > n_in)
    for (size_t i = 0; i < all[0].size(); ++i) all[0][i] += x[n_in][i];
  if (c.out.size() == n_in - 2) return all;
  Values sum(n);
  for (size_t i = 0; i < all[0].size(); ++i) sum[i % n] += all[0][i];
  all.push_back(sum);
  return all;
}

// Kinds of tensors: rows 'x', column vector 'w', row statistic 's'.
std::vector<orr_tensor> tensors(const std::string& kinds, int32_t dtype, int64_t rows, int64_t n) {
  std::vector<orr_tensor> all;
  for (char k : kinds)
    all.push_back(k == 'x'   ? tensor(dtype, {rows, n})
                  : k == 'w' ? tensor(dtype, {n})
                             : tensor(wide(dtype), {rows}));
  return all;
}

std::vector<int> row_dims(const std::string& kinds) {
  std::vector<int> dims;
  for (char k : kinds) dims.push_back(k == 'w' ? -1 : 0);
  return dims;
}

struct Kind {
  const char *name, *in, *out;
  Oracle oracle;
};
const Kind kKinds[] = {
    {"softmax", "x", "x", softmax},           {"softmax_grad", "xx", "x", softmax_grad},
    {"layernorm", "xww", "xss", norm_oracle}, {"layernorm_grad", "xxwss", "x", layernorm_grad},
    {"rmsnorm", "xw", "xs", norm_oracle},     {"rmsnorm_grad", "xxws", "x", layernorm_grad}};

Case row_case(const Kind& kind, int32_t dtype, int64_t rows, int64_t n, double eps = 1e-2) {
  Case c;
  c.kind = kind.name;
  c.note = shape_note({rows, n}) + (eps == 1e-2 ? "" : "as_models_have_it");
  c.in = tensors(kind.in, dtype, rows, n);
  c.out = tensors(kind.out, dtype, rows, n);
  if (c.kind == "layernorm" || c.kind == "rmsnorm") c.attrs = {real("eps", eps)};
  c.oracle = kind.oracle;
  c.depth = double(n);
  if (rows == 256) c.axes = {{row_dims(kind.in), row_dims(kind.out)}};
  return c;
}

Case param_case(int32_t dtype, bool rms, int64_t rows, int64_t n) {
  Case c;
  c.kind = "norm_param_grad";
  c.note = std::string(rms ? "rms" : "layer") + shape_note({rows, n});
  c.in = tensors(rms ? "xxs" : "xxss", dtype, rows, n);
  c.out = tensors(rms ? "w" : "ww", dtype, rows, n);
  if (rms) c.attrs = {integer("rms", 1)};
  c.oracle = norm_param_grad;
  c.exact = true;
  c.depth = double(rows);
  return c;
}

// `more`: with a tensor that is added, and the sum.
Case norm_grad_case(int32_t dtype, bool rms, bool more, int64_t rows, int64_t n) {
  Case c;
  c.kind = "norm_grad";
  c.note = std::string(rms ? "rms" : "layer") + (more ? "more" : "") + shape_note({rows, n});
  c.in = tensors(std::string(rms ? "xxws" : "xxwss") + (more ? "x" : ""), dtype, rows, n);
  c.out = tensors(std::string(rms ? "xw" : "xww") + (more ? "w" : ""), dtype, rows, n);
  if (rms) c.attrs = {integer("rms", 1)};
  c.oracle = norm_grad;
  c.depth = double(std::max(rows, n));
  return c;
}

}  // namespace

std::vector<Values> norm_oracle(const Case& c, const std::vector<Values>& x) {
  Values y(x[0].size()), means, rstds;
  size_t n = size_t(c.in[0].dims[1]);
  bool rms = c.kind == "rmsnorm";
  each_row(c, [&](size_t, size_t at) {
    double mean = 0, square = 0;
    for (size_t i = 0; i < n && !rms; ++i) mean += x[0][at + i] / double(n);
    for (size_t i = 0; i < n; ++i) square += std::pow(x[0][at + i] - mean, 2) / double(n);
    double rstd = 1 / std::sqrt(square + c.real_attr("eps", 0));
    for (size_t i = 0; i < n; ++i)
      y[at + i] = (x[0][at + i] - mean) * rstd * x[1][i] + (rms ? 0 : x[2][i]);
    means.push_back(mean);
    rstds.push_back(rstd);
  });
  if (rms) return {y, rstds};
  return {y, means, rstds};
}

std::vector<Case> norm_cases() {
  std::vector<Case> cases;
  for (int32_t dtype : kReals) {
    for (const Kind& kind : kKinds) {
      for (int64_t n : {1, 2, 15, 17, 64, 1023, 1025, 2100})
        cases.push_back(row_case(kind, dtype, 3, n));
      for (int64_t n : {128, 768}) cases.push_back(row_case(kind, dtype, 5, n, 1e-5));
      cases.push_back(row_case(kind, dtype, 0, 8));
      cases.push_back(row_case(kind, dtype, 256, 65));
    }
    for (bool rms : {false, true}) {
      for (int64_t rows : {1, 63, 65, 200}) cases.push_back(param_case(dtype, rms, rows, 67));
      cases.push_back(param_case(dtype, rms, 40, 1));
      cases.push_back(param_case(dtype, rms, 70, 528));
      Case leaves = param_case(dtype, rms, 66, 35);
      leaves.note += "leaves";
      leaves.leaf_in.assign(leaves.in.size(), 0);
      cases.push_back(leaves);
      for (const Case& c : stored_otherwise(leaves, dtype)) cases.push_back(c);
      for (int64_t rows : {1, 63, 65, 200})
        cases.push_back(norm_grad_case(dtype, rms, rows % 2, rows, 67));
      for (int64_t n : {1, 768, 1025}) cases.push_back(norm_grad_case(dtype, rms, n > 1, 10, n));
    }
  }
  return cases;
}

}  // namespace kernel_suite
