// SPDX-License-Identifier: Apache-2.0
//
// A matmul_pointwise (ops.h) as the two ops that it stands for.
#pragma once

#include <vector>

#include "lower/kernel_choice.h"
#include "program/op.h"

namespace orrery {

Op product_of(Op both);
int32_t product_dtype(const Op& both);
// Whether a register of the expression is the product itself.
bool is_product(const Op& both, int32_t reg);

std::vector<orr_tensor> abi_tensors(const std::vector<Layout>& layouts);
// Whether a kernel takes both as they lie, and none is better at the product alone.
bool taken_as_one(const KernelChoice& kernels, const Op& both, const std::vector<Layout>& in,
                  const std::vector<Layout>& out);

}  // namespace orrery
