// SPDX-License-Identifier: Apache-2.0
//
// Chooses the element type in which gradients are added over the batch and sent.
#pragma once

#include <orrery/sdk/program.hpp>

namespace precision {

// Makes the op that sums the gradient of a parameter over the batch store it in `dtype`, and so the
// ops that only move the sum. The optimizer gets the gradient in the parameter's type. Throws
// orr::Error with the op's line if that is not possible.
void store_gradients(const orr::Program& program, int32_t dtype);

}  // namespace precision
