// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../op.h"

namespace orr_cuda {

// The kind matmul where window_layout.h takes it.
extern const Family window_product_family;

}  // namespace orr_cuda
