// SPDX-License-Identifier: Apache-2.0
//
// Who has started this process, past ranks and shells between.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace orrery {

// The nearest ancestor that was started with none of the environment variables, or whose
// environment may not be looked at; 1 at the latest.
pid_t ancestor_without(const std::vector<std::string>& variables);

}  // namespace orrery
