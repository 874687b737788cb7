// SPDX-License-Identifier: Apache-2.0
//
// Memory for generated machine code.
#pragma once

#include <memory>
#include <string>

namespace orr_cpu {

// Executable memory with these bytes; equal bytes share it while anybody holds it. Null if there
// are no bytes, or if the system refuses executable memory, which is logged once. [any thread]
std::shared_ptr<void> executable(const std::string& code);

}  // namespace orr_cpu
