// SPDX-License-Identifier: Apache-2.0
//
// The device "host": ordinary memory, no streams. Big allocations ask for huge pages and are
// touched by all pool threads once.
#pragma once

#include <orrery/device.h>

namespace orrery {

const orr_device_api& host_device();

}  // namespace orrery
