// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdint.h>

namespace orr_cuda {

enum { kWindowThreads = 256 };

// The op fold: x[lead, count..., size..., width] -> y[lead, length..., width]. One to three
// windowed dims as three: those that are missing come first, with one window of one element.
struct WindowArgs {
  const void* x;
  void* y;
  int64_t lead, width;
  int64_t count[3], size[3], length[3], stride[3], dilation[3];
};

}  // namespace orr_cuda
