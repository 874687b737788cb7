// SPDX-License-Identifier: Apache-2.0
//
// Single elements of tensors, of every dtype.
#pragma once

#include <cstdint>

namespace orrery {

// The element at `place` as a number, and back: rounded to nearest even for 16-bit types.
double read_element(int32_t dtype, const void* place);
void write_element(int32_t dtype, void* place, double value);

}  // namespace orrery
