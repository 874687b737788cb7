// SPDX-License-Identifier: Apache-2.0
//
// Writes pointwise expressions as CUDA C++: one statement per instruction, for the V elements of a
// thread. Each result is rounded to its dtype, so fusing two expressions changes no bit.
#pragma once

#include <orrery/kernel.h>

#include <string>
#include <vector>

namespace orr_cuda {

// The code that generated sources use: element types, loads, the functions of ops.h, Philox.
extern const char pointwise_prelude[];

// The statements that compute every register r<k>[V]; `e` is the index of the first element, p<i>
// the address of input i for it, s<i> its step (0 or 1). REQUIRES: the expression is checked.
std::string expression_statements(const orr_op& op);

// The inputs that register r is the sum of, that of the last addition at the end if there are
// three. Throws Unsupported if it is something else, or has more than three terms.
std::vector<int> terms_of(const orr_expr& e, int r);

// The C++ type of an element in memory: "Bf16".
const char* memory_type(int32_t dtype);
// That of a register: reals of 16 bits are computed in f32, integers in 64 bits.
const char* register_type(int32_t dtype);

}  // namespace orr_cuda
