// SPDX-License-Identifier: Apache-2.0
#include "window_product_tensor.h"

ORR_WINDOW_PRODUCTS(tf32, float)
