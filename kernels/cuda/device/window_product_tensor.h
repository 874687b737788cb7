// SPDX-License-Identifier: Apache-2.0
//
// The functions of window products on tensor cores, of one element type. In their names k, m and n
// say which dim of a and of b lies along it; the tile of the result follows.
#pragma once

#include "window_product_kernel.h"

#define ORR_WINDOW_PRODUCT(name, T, a_along, b_along, m, n)                       \
  ORR_KERNEL_BLOCKS(window_product_##name, kProductThreads, 2, WindowProductArgs, \
                    window_product<T, a_along, b_along, m, n, TensorSums<T, m, n>>)

#define ORR_WINDOW_PRODUCTS(dtype, T)                               \
  namespace orr_cuda {                                              \
  ORR_WINDOW_PRODUCT(kk_128x64_##dtype, T, true, true, 128, 64)     \
  ORR_WINDOW_PRODUCT(kk_128x128_##dtype, T, true, true, 128, 128)   \
  ORR_WINDOW_PRODUCT(kn_128x64_##dtype, T, true, false, 128, 64)    \
  ORR_WINDOW_PRODUCT(kn_128x128_##dtype, T, true, false, 128, 128)  \
  ORR_WINDOW_PRODUCT(mn_64x128_##dtype, T, false, false, 64, 128)   \
  ORR_WINDOW_PRODUCT(mn_128x64_##dtype, T, false, false, 128, 64)   \
  ORR_WINDOW_PRODUCT(mn_128x128_##dtype, T, false, false, 128, 128) \
  }
