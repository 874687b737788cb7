// SPDX-License-Identifier: Apache-2.0
//
// What planning asks of the device, with and without one.
#pragma once

#include <cuda.h>
#include <orrery/device.h>

namespace orr_cuda {

// Of this device; what is true of all of them where there is no driver. [any thread]
orr_device_facts facts_of(CUdevice device);

}  // namespace orr_cuda
