// SPDX-License-Identifier: Apache-2.0
//
// The process's one GPU: device/1. Its context is the device's primary one, which comm backends and
// other plugins use too.
#pragma once

#include <cuda.h>
#include <orrery/device.h>

#include "driver.h"

namespace orr_cuda {

extern const orr_device_api device_api;

// What is known of the opened device.
struct Opened {
  CUdevice device = 0;
  CUcontext context = nullptr;
  int arch = 0;  // 90: compute capability 9.0
  int multiprocessors = 0;
};

// Throws orr::Error, ORR_INVALID, before the host has opened the device. [any thread]
const Opened& opened();

// Makes the device the calling thread's. Before any other call on this thread. REQUIRES: open.
void enter();

// The address of a buffer of tier DEVICE or PINNED. Throws orr::Error for another one.
CUdeviceptr address(const orr_buffer& buffer);

}  // namespace orr_cuda
