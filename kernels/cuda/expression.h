// SPDX-License-Identifier: Apache-2.0
//
// Pointwise expressions as CUDA C++: one statement per instruction over the V elements of a thread,
// each result rounded to its dtype, so that fusing two expressions changes no bit.
#pragma once

#include <orrery/kernel.h>

#include <string>

namespace orr_cuda {

// Everything that generated sources call: element types, loads, the functions of ops.h, Philox.
extern const char pointwise_prelude[];

// The statements that compute every register r<k>[V]; `e` is the index of the first element, p<i>
// the address of input i for it, s<i> its step (0 or 1). Throws Unsupported if an instruction does
// not follow ops.h.
std::string expression_statements(const orr_op& op);

// What a tensor of this dtype is in memory: "Bf16".
const char* memory_type(int32_t dtype);

}  // namespace orr_cuda
