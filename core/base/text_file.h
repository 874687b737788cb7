// SPDX-License-Identifier: Apache-2.0
//
// Files that people and scripts name: read whole, or refused before anything is allocated for them.
#pragma once

#include <cstdint>
#include <string>

namespace orrery {

// The text of a regular file, or of one that a symbolic link names. Throws Error (`code`), whose
// message is "<label>: <why>", for a file that cannot be opened, is a directory, a pipe or a device
// (which might never end), or has more than `most` bytes or than the machine has memory.
std::string read_text(const std::string& path, const std::string& label, int code,
                      uint64_t most = UINT64_MAX);

}  // namespace orrery
