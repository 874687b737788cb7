// SPDX-License-Identifier: Apache-2.0
//
// Outputs against outputs for GoogleTest, and what a plugin takes.
#pragma once

#include <gtest/gtest.h>

#include "conformance/kernel/compare.h"

namespace kernel_suite {

// REQUIRES: `expected` was rounded to the outputs' dtypes.
::testing::AssertionResult equal(const Case& c, const std::vector<Values>& got,
                                 const std::vector<Values>& expected);
// A launch that did what it must and touched nothing else.
::testing::AssertionResult clean(const RunResult& r);

// What the plugin answers for the case; launches nothing.
orr_support support_of(const std::string& plugin, const Case& c);
inline bool takes(const std::string& plugin, const Case& c) {
  return support_of(plugin, c).score > 0;
}

}  // namespace kernel_suite
