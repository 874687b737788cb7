// SPDX-License-Identifier: Apache-2.0
//
// Steps on 8-byte values (doubles and integers) and between formats. Plain loops that the compiler
// vectorises: they are exact, or scalar calls of libm, so their bits do not depend on how.
#pragma once

#include <stdint.h>

namespace orr_cpu::ORR_ISA {

void wide_real(int fn, void* to, const void* a, const void* b, const void* c);
void wide_int(int fn, int dtype, void* to, const void* a, const void* b, const void* c);
// Between slot formats, by dtype.
void convert(int from, int dtype, void* to, const void* a);
// From a tensor's format to the slot's, and back.
void widen(int from, void* to, const void* a);
void narrow(int dtype, void* to, const void* a);

// sin (quadrant 0) or cos (quadrant 1) of n floats. The argument is reduced in double.
void sines(float* to, const float* a, int n, int quadrant);

}  // namespace orr_cpu::ORR_ISA
