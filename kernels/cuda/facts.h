// SPDX-License-Identifier: Apache-2.0
//
// The facts of the device that planning needs, whether there is one or not.
#pragma once

#include <cuda.h>
#include <orrery/device.h>

namespace orr_cuda {

// The facts of this device; without a driver those that are the same for all. [any thread]
orr_device_facts facts_of(CUdevice device);

}  // namespace orr_cuda
