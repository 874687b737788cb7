// SPDX-License-Identifier: Apache-2.0
//
// The kernels as the ABI's table, for the device "host".
#pragma once

#include <orrery/kernel.h>

namespace reference {

const orr_kernel_api& table();

}  // namespace reference
