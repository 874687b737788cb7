// SPDX-License-Identifier: Apache-2.0
//
// The small part of a product of 16-bit elements that is computed in two (product_parts.h): a few
// rows or columns, or sums of a few terms.
#include "rest.h"

#include "kernel.h"

namespace orr_cuda {
namespace {

template <class T>
__device__ float element(const RestMatrix& x, int64_t row, int64_t column) {
  return get(static_cast<const T*>(x.at)[row * x.rows + column * x.columns]);
}

// Lane l adds the terms l, l + team and so on; then the lanes are added in a tree.
template <class T>
__device__ void rest(const RestArgs& a) {
  const int64_t thread = int64_t(blockIdx.x) * kRestThreads + threadIdx.x;
  const int64_t sum_number = thread / a.team, m = sum_number / a.n, n = sum_number % a.n;
  const bool exists = m < a.m;  // all lanes of a warp take part in its exchanges
  float sum = 0;
#pragma unroll 8
  for (int64_t k = thread % a.team; exists && k < a.k; k += a.team)
    sum += element<T>(a.a, m, k) * element<T>(a.b, k, n);
  for (int d = a.team / 2; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
  if (exists && thread % a.team == 0)
    static_cast<T*>(a.y.at)[m * a.y.rows + n * a.y.columns] = rounded<T>(sum);
}

}  // namespace

ORR_KERNEL(rest_bf16, kRestThreads, RestArgs, rest<Bf16>)
ORR_KERNEL(rest_f16, kRestThreads, RestArgs, rest<F16>)

}  // namespace orr_cuda
