// SPDX-License-Identifier: Apache-2.0
//
// Reads a whole text file that a user or a script names. A file that cannot be read is refused
// before memory is allocated for it.
#pragma once

#include <cstdint>
#include <string>

namespace orrery {

// The text of a regular file; symbolic links are followed. Throws Error (`code`) with the message
// "<label>: <why>" if the file cannot be opened, is a directory, a pipe or a device (which might
// never end), or is larger than `most` bytes or than the machine's memory.
std::string read_text(const std::string& path, const std::string& label, int code,
                      uint64_t most = UINT64_MAX);

}  // namespace orrery
