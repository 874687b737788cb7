// SPDX-License-Identifier: Apache-2.0
//
// The GPU of this process: device/1. It uses the primary context of the device, as comm backends
// and other plugins do.
#pragma once

#include <cuda.h>
#include <orrery/device.h>

#include <orrery/sdk/plugin.hpp>

#include "driver.h"

namespace orr_cuda {

extern const orr_device_api device_api;

// Facts of the opened device.
struct Opened {
  CUdevice device = 0;
  CUcontext context = nullptr;
  int arch = 0;  // 90: compute capability 9.0
};

// Throws orr::Error, ORR_INVALID, as long as the host has not opened the device. [any thread]
const Opened& opened();

// Makes the device's context current on the calling thread. A thread must call this before it calls
// the driver for anything else. REQUIRES: the device is open.
void enter();

// Runs the body of a function of the ABI, with the context current.
template <class Body>
orr_status* on_device(const Body& body) {
  return orr::guard([&] {
    enter();
    body();
  });
}

// The address of a buffer of tier DEVICE or PINNED. Throws orr::Error for other tiers.
CUdeviceptr address(const orr_buffer& buffer);

}  // namespace orr_cuda
