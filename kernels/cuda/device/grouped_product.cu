// SPDX-License-Identifier: Apache-2.0
//
// Grouped products on tensor cores, and in f32 without them. In the names k and n say which dim of
// b lies along it.
#include "grouped_product_kernel.h"

namespace orr_cuda {
namespace {

template <int rows, int columns>
using Bf16Sums = TensorSums<Bf16, rows, columns>;
template <int rows, int columns>
using F16Sums = TensorSums<F16, rows, columns>;
template <int rows, int columns>
using Tf32Sums = TensorSums<float, rows, columns>;

}  // namespace
}  // namespace orr_cuda

ORR_GROUPED_PRODUCTS(bf16, Bf16, Bf16Sums)
ORR_GROUPED_PRODUCTS(f16, F16, F16Sums)
ORR_GROUPED_PRODUCTS(tf32, float, Tf32Sums)
ORR_GROUPED_PRODUCTS(f32, float, PlainSums)
