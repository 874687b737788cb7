// SPDX-License-Identifier: Apache-2.0
//
// Files that are read as a whole, such as vocabularies.
#pragma once

#include <string>

namespace data {

// The bytes of a file. Throws Error that names it, also for one of more than 64 MiB.
std::string small_text(const std::string& path);

}  // namespace data
