// SPDX-License-Identifier: Apache-2.0
//
// Finds the process that has started a rank, past shells between them.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace orrery {

// The nearest ancestor that was started with none of these environment variables, or whose
// environment may not be read; process 1 at the latest.
pid_t ancestor_without(const std::vector<std::string>& variables);

}  // namespace orrery
