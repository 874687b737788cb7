// SPDX-License-Identifier: Apache-2.0
//
// HDF5's library ends the process on some files whose headers make no sense: HDF5 1.10 divides by
// numbers of them that may be 0. So a file is opened in a process of its own first.
#pragma once

#include <string>
#include <vector>

namespace data {

// Throws Error if opening these arrays of the file ends a process, or takes a minute. What the
// library refuses by itself is no error here. REQUIRES: a Turn.
void try_apart(const std::string& path, const std::vector<std::string>& datasets);

}  // namespace data
