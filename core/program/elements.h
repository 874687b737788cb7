// SPDX-License-Identifier: Apache-2.0
//
// Reads and writes single elements of tensors of every dtype.
#pragma once

#include <cstdint>

namespace orrery {

// The element at `place` as a number, and back. 16-bit types are rounded to nearest even.
double read_element(int32_t dtype, const void* place);
void write_element(int32_t dtype, void* place, double value);

// Whether a dtype holds the number, if need be rounded to a real one.
bool fits(double number, int32_t dtype);

}  // namespace orrery
