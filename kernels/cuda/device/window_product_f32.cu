// SPDX-License-Identifier: Apache-2.0
//
// Window products in f32 (see window_product_tensor.h for the names), and the sums of parts of K.
#include "window_product_kernel.h"

namespace orr_cuda {
namespace {

// Adds the parts of a leaf in their order, and the leaves of a node in the tree (ops.h, LEAVES);
// what is stored of a leaf or a node is rounded to T.
template <class T>
__device__ void window_product_sum(const WindowSumArgs& a) {
  const int64_t step = a.elements * a.parts, group = blockIdx.y;
  for (int64_t i = int64_t(blockIdx.x) * kProductThreads + threadIdx.x; i < a.elements;
       i += int64_t(gridDim.x) * kProductThreads) {
    const int64_t row = i / a.n;
    T* y = static_cast<T*>(a.y) + group * a.y_group + row * a.y_row + (i - row * a.n);
    for (int node = 0; node < a.nodes; ++node, y += a.y_node) {
      float* const first = a.sums + group * a.group + a.node[node].first * step + i;
      const int count = a.node[node].count;
      for (int leaf = 0; leaf < count; ++leaf) {
        float sum = first[leaf * step];
#pragma unroll 8
        for (int part = 1; part < a.parts; ++part) sum += first[leaf * step + part * a.elements];
        first[leaf * step] = get(rounded<T>(sum));
      }
      for (int apart = 1; apart < count; apart *= 2)
        for (int leaf = 0; leaf + apart < count; leaf += 2 * apart)
          first[leaf * step] = get(rounded<T>(first[leaf * step] + first[(leaf + apart) * step]));
      *y = rounded<T>(*first);
    }
  }
}

}  // namespace

#define ORR_WINDOW_PRODUCT(name, a_along, b_along, m, n)                      \
  ORR_KERNEL(window_product_##name##_f32, kProductThreads, WindowProductArgs, \
             window_product<float, a_along, b_along, m, n, PlainSums<m, n>>)
ORR_WINDOW_PRODUCT(kk_128x64, true, true, 128, 64)
ORR_WINDOW_PRODUCT(kn_128x64, true, false, 128, 64)
ORR_WINDOW_PRODUCT(mn_128x64, false, false, 128, 64)
ORR_WINDOW_PRODUCT(mn_64x128, false, false, 64, 128)

ORR_KERNEL(window_product_sum_f32, kProductThreads, WindowSumArgs, window_product_sum<float>)
ORR_KERNEL(window_product_sum_bf16, kProductThreads, WindowSumArgs, window_product_sum<Bf16>)
ORR_KERNEL(window_product_sum_f16, kProductThreads, WindowSumArgs, window_product_sum<F16>)

}  // namespace orr_cuda
