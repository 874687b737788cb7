// SPDX-License-Identifier: Apache-2.0
//
// The device "host": ordinary memory, no streams. Large allocations ask the kernel for huge pages,
// and all threads of the pool touch them once.
#pragma once

#include <orrery/device.h>

namespace orrery {

const orr_device_api& host_device();

}  // namespace orrery
