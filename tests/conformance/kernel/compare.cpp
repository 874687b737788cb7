// SPDX-License-Identifier: Apache-2.0
#include "conformance/kernel/compare.h"

#include <fmt/format.h>

#include <cmath>

namespace kernel_suite {
namespace {

double tolerance(int32_t dtype, double depth) {
  switch (dtype) {
    case ORR_F32: return 1e-5 * std::sqrt(depth);
    case ORR_F64: return 1e-10 * std::sqrt(depth);
    case ORR_BF16: return 2e-2;
    case ORR_F16: return 4e-3;
    case ORR_F8_E4M3: return 0.125;
    case ORR_F8_E5M2: return 0.25;
    default: return 0;
  }
}

double rms(const Values& v) {
  double sum = 0, n = 0;
  for (double x : v)
    if (std::isfinite(x)) sum += x * x, ++n;
  return n > 0 ? std::sqrt(sum / n) : 0;
}

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

template <class Close>
std::string compare(const std::vector<Values>& got, const std::vector<Values>& expected,
                    Close&& close) {
  if (got.size() != expected.size()) return "number of outputs";
  for (size_t o = 0; o < got.size(); ++o) {
    if (got[o].size() != expected[o].size()) return fmt::format("size of output {}", o);
    for (size_t i = 0; i < got[o].size(); ++i)
      if (!same(got[o][i], expected[o][i]) && !close(o, i))
        return fmt::format("output {} element {} of {}: {:.9g}, expected {:.9g}", o, i,
                           got[o].size(), got[o][i], expected[o][i]);
  }
  return "";
}

}  // namespace

std::string difference(const std::vector<Values>& got, const std::vector<Values>& expected) {
  return compare(got, expected, [](size_t, size_t) { return false; });
}

std::string distance(const Case& c, const std::vector<Values>& got,
                     const std::vector<Values>& expected) {
  Values typical;
  for (const Values& v : expected) typical.push_back(rms(v));
  return compare(got, expected, [&](size_t o, size_t i) {
    // Inputs are of size 1: a sum that cancels to nothing is as wrong as its terms are.
    double scale = std::fabs(expected[o][i]) + typical[o] + 0.1;
    double allowed = tolerance(c.out[o].dtype, c.depth) * scale;
    return std::fabs(got[o][i] - expected[o][i]) <= allowed;
  });
}

std::string trouble(const RunResult& r) { return r.error.empty() ? r.damage : r.error; }

std::vector<Values> expected(const Case& c, const std::vector<Values>& inputs) {
  std::vector<Values> all = c.oracle(c, inputs);
  for (size_t o = 0; o < all.size(); ++o)
    for (double& v : all[o]) v = rounded(c.out[o].dtype, v);
  return all;
}

}  // namespace kernel_suite
