// SPDX-License-Identifier: Apache-2.0
//
// Whether the place to which a job saves when it is told to stop can be saved to.
#pragma once

#include <string>

namespace orrery {

// Throws Error on all ranks if rank 0 could not save to this directory now; else nothing stays of
// the attempt. Collective. [main thread]
void check_stop_place(const std::string& directory, const std::string& line);

}  // namespace orrery
