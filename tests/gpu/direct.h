// SPDX-License-Identifier: Apache-2.0
//
// Op families of the cuda plugin called without the plugin, on emulated device code. Every result
// here is emulated: it says what the code computes, not what a GPU does.
#pragma once

#include "conformance/kernel/harness.h"

namespace emulated {

// As kernel_suite::run, for the family of c.kind; unsupported if there is none. `order` is the seed
// of the order in which the threads of a block run.
kernel_suite::RunResult run(const kernel_suite::Case& c,
                            const std::vector<kernel_suite::Values>& inputs,
                            const kernel_suite::RunOptions& options = {}, uint64_t order = 0);

// Whether the case is a sum in another dtype than its terms' (orrery/ops.h) that the plugin refuses
// by design: it has those of 16 bits in f32 by reduce alone.
bool is_left_to_the_core(const kernel_suite::Case& c);

// Whether no function of the device rounds otherwise in this op, and its sums have the order of
// ops.h: its bits are those of `reference`.
bool has_reference_bits(const kernel_suite::Case& c);

// Whether the plugin makes a kernel for the case at run time; such are not emulated (next_test.cpp
// has them on the fake).
bool is_generated(const kernel_suite::Case& c);

}  // namespace emulated
