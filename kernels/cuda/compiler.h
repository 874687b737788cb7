// SPDX-License-Identifier: Apache-2.0
//
// NVIDIA's run-time compiler, opened at its first use. ORRERY_NVRTC_LIBRARY names another file than
// libnvrtc.so of CUDA 13 or 12.
#pragma once

#include <string>

namespace orr_cuda {

struct Compiled {
  std::string image;
  std::string log;  // warnings
};

// Compiles CUDA C++ for sm_<arch> or, with `ptx`, to PTX for compute_<arch>, without contraction.
// Throws orr::Error with the compiler's log. [any thread]
Compiled compile(const std::string& source, int arch, bool ptx);

// The newest architecture that the compiler knows and that is not newer than the device.
int newest_known(int device);

// The same image from the disk (disk_cache.h) if a run has compiled it before, under this key. What
// another process of this host is compiling is waited for. [any thread]
std::string image_of(const std::string& source, int arch, bool ptx);
std::string image_key(const std::string& source, int arch, bool ptx);

}  // namespace orr_cuda
