// SPDX-License-Identifier: Apache-2.0
//
// Steps on 8-byte values (doubles and integers) and conversions between formats. They are plain
// loops that the compiler vectorises. Their bits do not depend on how it does so: they are exact,
// or call scalar functions of libm.
#pragma once

#include <stdint.h>

namespace orr_cpu::ORR_ISA {

void wide_real(int fn, void* to, const void* a, const void* b, const void* c);
void wide_int(int fn, int dtype, void* to, const void* a, const void* b, const void* c);
// Converts between the slot formats of two dtypes.
void convert(int from, int dtype, void* to, const void* a);
// Convert from a tensor's format to the slot's, and back.
void widen(int from, void* to, const void* a);
void narrow(int dtype, void* to, const void* a);

// sin (quadrant 0) or cos (quadrant 1) of n floats. The argument is reduced in double.
void sines(float* to, const float* a, int n, int quadrant);

}  // namespace orr_cpu::ORR_ISA
