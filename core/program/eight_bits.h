// SPDX-License-Identifier: Apache-2.0
//
// Numbers of eight bits (orrery/ops.h, EIGHT BITS). They are no reals to ops: matmul multiplies
// them, casts convert them, and other ops only move them.
#pragma once

#include "program/types.h"

namespace orrery {

class Program;
struct Op;

inline bool is_eight_bits(int32_t dtype) { return dtype == ORR_F8_E4M3 || dtype == ORR_F8_E5M2; }

// Whether elements of this dtype hold fractions.
inline bool is_any_real(int32_t dtype) { return is_real(dtype) || is_eight_bits(dtype); }

// Throws Error with the op's place if it reads such numbers and computes with them.
void check_eight_bits(const Program& p, const Op& op);

}  // namespace orrery
