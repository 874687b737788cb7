// SPDX-License-Identifier: Apache-2.0
//
// A block of a row sum in the order of ops.h; half a warp computes its 16 lanes.
#pragma once

#include <orrery/ops.h>

#include "kernel.h"

namespace orr_cuda {

// Folds term(c) by Fn for c in [first, end), at most ORR_SUM_BLOCK of them, with 16 threads; each
// gets the result.
template <class Fn, class A, class Index, class Term>
__device__ A block_fold(Index first, Index end, Term term) {
  const unsigned half = 0xffffu << (threadIdx.x & 16);
  A x = Fn::template start<A>();
#pragma unroll 8
  for (Index c = first + Index(threadIdx.x & 15); c < end; c += 16) x = Fn::fold(x, A(term(c)));
#pragma unroll
  for (int d = 8; d > 0; d /= 2) x = Fn::fold(x, A(__shfl_down_sync(half, x, d, 16)));
  return __shfl_sync(half, x, 0, 16);
}

}  // namespace orr_cuda
