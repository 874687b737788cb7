// SPDX-License-Identifier: Apache-2.0
//
// The element type in which gradients are added over the batch, and sent.
#pragma once

#include <orrery/sdk/program.hpp>

namespace precision {

// Has the gradient of every parameter stored in `dtype` by the op that sums it over the batch, and
// by those that only move what is summed; the optimizer gets it in the parameter's. Throws
// orr::Error with the op's line where that cannot be.
void store_gradients(const orr::Program& program, int32_t dtype);

}  // namespace precision
