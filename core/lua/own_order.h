// SPDX-License-Identifier: Apache-2.0
//
// The order of samples that a function of the script makes, for batches.
#pragma once

#include <cstdint>

#include "data/order.h"
#include "lua/layer.h"

namespace orrery::lua {

// BatchOrder::listed by order(epoch, random) of the script, whose samples are 1..items. The random
// numbers are a function of seed and epoch. Its result throws Error for what is no such list, and
// for one of another length than the first. [main thread]
std::function<const std::vector<int64_t>&(int64_t epoch)> own_order(Function order, int64_t items,
                                                                    uint64_t seed);

}  // namespace orrery::lua
