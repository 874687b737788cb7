// SPDX-License-Identifier: Apache-2.0
//
// The directory of what a run records where the user has named none.
#pragma once

#include <string>

namespace orrery {

// "runs/2026-11-28-14-03-22-gpt": the time now, and the script's name without what a path cannot
// have. "" if ORRERY_NO_DIR is set.
std::string records_directory(const std::string& script);

}  // namespace orrery
