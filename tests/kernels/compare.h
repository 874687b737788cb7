// SPDX-License-Identifier: Apache-2.0
//
// Outputs against outputs: exactly, within a tolerance, bit for bit; and the suite's parameters.
#pragma once

#include <gtest/gtest.h>

#include "check/kernel/compare.h"

namespace kernel_suite {

// REQUIRES: `expected` was rounded to the outputs' dtypes.
::testing::AssertionResult equal(const Case& c, const std::vector<Values>& got,
                                 const std::vector<Values>& expected);
// Reals within the tolerance of their dtype; integers exactly.
::testing::AssertionResult near(const Case& c, const std::vector<Values>& got,
                                const std::vector<Values>& expected);
// A launch that did what it must and touched nothing else.
::testing::AssertionResult clean(const RunResult& r);

// A plugin and a case.
struct Param {
  std::string plugin;
  Case c;
};
inline void PrintTo(const Param& p, std::ostream* out) { *out << p.plugin << " " << p.c.name(); }
inline std::string param_name(const ::testing::TestParamInfo<Param>& info) {
  return info.param.plugin + "_" + info.param.c.name();
}
// Every case that `wanted` accepts on each of the plugins.
std::vector<Param> params(const std::vector<std::string>& plugins, bool (*wanted)(const Case&));

}  // namespace kernel_suite
