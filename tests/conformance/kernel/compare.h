// SPDX-License-Identifier: Apache-2.0
//
// Outputs against outputs: exactly, or within a tolerance. Each answers with the first difference
// in words, "" if there is none.
#pragma once

#include "conformance/kernel/harness.h"

namespace kernel_suite {

// REQUIRES: `expected` was rounded to the outputs' dtypes.
std::string difference(const std::vector<Values>& got, const std::vector<Values>& expected);
// Reals within the tolerance of their dtype; integers exactly.
std::string distance(const Case& c, const std::vector<Values>& got,
                     const std::vector<Values>& expected);
// What a launch did wrong: its error, or what it wrote outside of its outputs.
std::string trouble(const RunResult& r);

// The oracle's answer, rounded to the outputs' dtypes.
std::vector<Values> expected(const Case& c, const std::vector<Values>& inputs);

}  // namespace kernel_suite
