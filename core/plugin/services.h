// SPDX-License-Identifier: Apache-2.0
//
// What the plugin room needs from `core/run`, a room above it. The functions are declared here and
// defined in run/services.cpp, so that includes point one way.
#pragma once

#include <orrery/device.h>

#include <cstdint>

namespace orrery::services {

// See orr_host.parallel_for and orr_host.threads.
void parallel_for(int64_t n, void (*fn)(void*, int64_t), void* arg);
int32_t threads();

// The device that the core itself serves.
const orr_device_api& host_device();

}  // namespace orrery::services
