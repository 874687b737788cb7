// SPDX-License-Identifier: Apache-2.0
//
// What a pointwise expression gives, one element at a time in f64, rounded to each register's
// dtype.
#pragma once

#include "conformance/kernel/harness.h"

namespace kernel_suite {

std::vector<Values> pointwise_oracle(const Case& c, const std::vector<Values>& inputs);

}  // namespace kernel_suite
