// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdint.h>

namespace orr_cuda {

constexpr int kDifferThreads = 256;

// Sets *differ to 1 if the two tensors have other bits; else leaves it.
struct DifferArgs {
  const uint16_t* a;
  const uint16_t* b;
  int64_t words;
  int32_t* differ;
};

}  // namespace orr_cuda
