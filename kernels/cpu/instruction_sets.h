// SPDX-License-Identifier: Apache-2.0
//
// The instruction sets that kernels are compiled for, and which of them this CPU has.
#pragma once

#include "kernel.h"

namespace orr_cpu {

// "avx2", as -Dcpu_isas names it.
const char* name_of(Isa isa);

// Whether kernels for it are in this plugin.
bool was_built(Isa isa);

// The best one that was built and that this CPU has, AVX-512 only if `wide`; -1: none, and
// `reason` says why.
int best_isa(bool wide, const char*& reason);

}  // namespace orr_cpu
