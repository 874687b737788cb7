// SPDX-License-Identifier: Apache-2.0
//
// Bad data that kernels find: one record on the device, which the first of them writes (prelude.cl,
// fault) and event_sync reads.
#pragma once

#include <string>

#include "machine.h"

namespace ocl {

// The record's buffer. Made with the first kernel that needs it. [main thread]
cl_mem fault_record();
// The number under which kernels of this text report; `text` has {row} and {value} where they
// belong.
int64_t add_fault(const std::string& text);
// Throws what has been reported since the last call. REQUIRES: who reports is done.
void throw_fault();

}  // namespace ocl
