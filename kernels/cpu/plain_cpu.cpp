// SPDX-License-Identifier: Apache-2.0
//
// What only x86-64 has here, on other CPUs: instructions for bf16 (pairs.cpp, amx.cpp), and machine
// code for expressions (pointwise_code.cpp), which are interpreted instead.
#include "kernel.h"
#include "pointwise_code.h"

namespace orr_cpu {

bool pairs_are_fast() { return false; }
bool amx_works() { return false; }

pointwise::MachineCode pointwise::translate(const Compiled&, int, const Isa&) { return {}; }

}  // namespace orr_cpu
