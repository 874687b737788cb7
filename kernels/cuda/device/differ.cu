// SPDX-License-Identifier: Apache-2.0
//
// Compares the bits of two results, for the choice among algorithms of products.
#include "differ.h"
#include "kernel.h"

namespace orr_cuda {
namespace {

__device__ void differ(const DifferArgs& a) {
  const int64_t step = int64_t(gridDim.x) * kDifferThreads;
  for (int64_t i = int64_t(blockIdx.x) * kDifferThreads + threadIdx.x; i < a.words; i += step)
    if (a.a[i] != a.b[i]) *a.differ = 1;
}

}  // namespace

ORR_KERNEL(differ_words, kDifferThreads, DifferArgs, differ)

}  // namespace orr_cuda
