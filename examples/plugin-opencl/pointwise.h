// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/kernel.h>

#include <string>

namespace ocl {

// The expression as OpenCL C: a kernel "pointwise" of the op's tensors and a layout
// (pointwise.cpp). Throws Refused for what is not here.
std::string source_of(const orr_op& op);

}  // namespace ocl
