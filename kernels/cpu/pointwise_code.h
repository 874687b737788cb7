// SPDX-License-Identifier: Apache-2.0
//
// Machine code of an expression's body: one loop over all elements of a stretch, values in
// registers. Each instruction of the expression is the same instruction as in the block machine, so
// the bits are too. Bodies with other steps (see trace) stay with the block machine as a whole.
#pragma once

#include <string>

#include "pointwise_trace.h"

namespace orr_cpu::pointwise {

struct MachineCode {
  std::string bytes;        // run at any address, as program.body_code; none: not to be translated
  int32_t spill_bytes = 0;  // of the program
};

// The code of a body for scratch blocks that lie `stride` bytes apart.
MachineCode translate(const Compiled& code, int stride, const Isa& isa);

}  // namespace orr_cpu::pointwise
