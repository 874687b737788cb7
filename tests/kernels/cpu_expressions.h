// SPDX-License-Identifier: Apache-2.0
//
// Random pointwise expressions of what is machine code on CPUs.
#pragma once

#include "conformance/kernel/harness.h"

namespace kernel_suite {

// `mixed`: with integers, doubles, booleans in memory and random numbers.
Case random_case(uint32_t seed, bool mixed);

}  // namespace kernel_suite
