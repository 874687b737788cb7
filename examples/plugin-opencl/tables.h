// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/kernel.h>

namespace ocl {

extern const orr_device_api device_table;  // device.cpp
extern const orr_kernel_api kernel_table;  // kernels.cpp

}  // namespace ocl
