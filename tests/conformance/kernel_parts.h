// SPDX-License-Identifier: Apache-2.0
//
// What the tests of kernel plugins share.
#pragma once

#include <orrery/kernel.h>

#include "conformance/kernel/harness.h"
#include "conformance/test.h"

namespace orrery::judge {

const orr_kernel_api& kernel_of(const Subject& subject);
// Skips if the plugin, or the device that it works on, is not here.
void require_device(const Subject& subject);
bool takes(const orr_kernel_api& api, const kernel_suite::Case& c);

// How it is called, whatever the op: struct sizes, threads, leaks.
std::vector<Test> kernel_contract_tests();
// Gradient ops by finite differences of the ops that they are gradients of.
std::vector<Test> gradient_tests();
// Labels and indices that point nowhere.
std::vector<Test> bad_data_tests();
// Small models on several ranks.
std::vector<Test> kernel_training_tests();

}  // namespace orrery::judge
