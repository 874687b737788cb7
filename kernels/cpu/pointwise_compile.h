// SPDX-License-Identifier: Apache-2.0
//
// The compiler of pointwise expressions. It walks depth-first from the outputs, keeps the current
// value in the accumulator, and puts values that are used twice into slots.
#pragma once

#include <vector>

#include "pointwise.h"

namespace orr_cpu::pointwise {

struct Compiled {
  std::vector<Step> prologue, body;
  std::vector<Walk> in, uniform, out;
  std::vector<Constant> constant;
  int slots = 0;
  int64_t period = 0;  // Program::period
};

// REQUIRES: `supports` accepted the op.
Compiled compile(const orr_op& op);

// Whether values of this dtype can be in the accumulator; the others have 8 bytes and are only in
// slots.
bool is_narrow(int32_t dtype);
// The walk of a tensor over the dims of the op's first output.
Walk walk_of(const orr_op& op, const orr_tensor& t, int tensor);
// Whether the tensor has the same element everywhere.
bool is_uniform(const orr_tensor& t);

}  // namespace orr_cpu::pointwise
