// SPDX-License-Identifier: Apache-2.0
//
// Translates an expression's body to machine code: one loop over consecutive elements, with values
// in registers. It uses the same machine instructions as the block machine, so the bits are the
// same. Bodies with steps that trace() cannot handle are run by the block machine.
#pragma once

#include <string>

#include "pointwise_trace.h"

namespace orr_cpu::pointwise {

struct MachineCode {
  std::string bytes;        // position-independent, for Program::body_code; empty: not translated
  int32_t spill_bytes = 0;  // for Program::spill_bytes
};

// Translates a body for scratch blocks that lie `stride` bytes apart.
MachineCode translate(const Compiled& code, int stride, const Isa& isa);

}  // namespace orr_cpu::pointwise
