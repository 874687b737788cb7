// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../op.h"

namespace orr_cuda {

// The kind matmul where window_layout.h takes it.
extern const Family window_product_family;
// The kind matmul_pointwise of such a product and a row that is added to it.
extern const Family window_product_bias_family;

}  // namespace orr_cuda
