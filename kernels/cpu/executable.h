// SPDX-License-Identifier: Apache-2.0
//
// Memory for generated machine code.
#pragma once

#include <memory>
#include <string>

namespace orr_cpu {

// Executable memory with these bytes, the same for equal ones while it is held. Null if there are
// none, or where the system refuses executable memory, which is logged once. [any thread]
std::shared_ptr<void> executable(const std::string& code);

}  // namespace orr_cpu
