// SPDX-License-Identifier: Apache-2.0
//
// NVIDIA's run-time compiler, opened at its first use. ORRERY_NVRTC_LIBRARY names another file than
// libnvrtc.so of CUDA 13 or 12.
#pragma once

#include <cuda.h>

#include <string>

namespace orr_cuda {

struct Compiled {
  std::string image;
  std::string log;  // warnings
};

// Compiles CUDA C++ for sm_<arch> or, with `ptx`, to PTX for compute_<arch>, without contraction.
// Throws orr::Error with the compiler's log. [main thread]
Compiled compile(const std::string& source, int arch, bool ptx);

// The same image from the disk (disk_cache.h) if a run has compiled it before, under this key.
std::string image_of(const std::string& source, int arch, bool ptx);
std::string image_key(const std::string& source, int arch, bool ptx);

// The module of this source on the open device. It is made at the first call, and kept. [main
// thread]
CUmodule module_of(const std::string& source);
CUfunction function_of(CUmodule module, const char* name);

}  // namespace orr_cuda
