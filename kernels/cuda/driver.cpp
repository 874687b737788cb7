// SPDX-License-Identifier: Apache-2.0
#include "driver.h"

namespace orr_cuda {

Driver::Driver() {
  void* library = open_library("ORRERY_CUDA_LIBRARY", {"libcuda.so.1"},
                               "no NVIDIA driver here (libcuda.so.1 was not found)");
  ORR_CUDA_FUNCTIONS(ORR_NEED)
  ORR_NEED(cuStreamGetCaptureInfo_v2)
}

const Driver& driver() {
  static const Driver opened;
  return opened;
}

std::string why_not_here() {
  try {
    int devices = 0;
    ORR_DRIVER(cuInit, 0);
    ORR_DRIVER(cuDeviceGetCount, &devices);
    return devices > 0 ? "" : "the NVIDIA driver shows no GPU: see CUDA_VISIBLE_DEVICES";
  } catch (const orr::Error& e) {
    return e.what();
  }
}

void check(CUresult code, const char* what) {
  if (code == CUDA_SUCCESS) return;
  const char* text = nullptr;
  driver().cuGetErrorString(code, &text);
  throw orr::Error(ORR_FAILED,
                   std::string(what) + ": " + (text ? text : "error " + std::to_string(code)));
}

}  // namespace orr_cuda
