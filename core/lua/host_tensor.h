// SPDX-License-Identifier: Apache-2.0
//
// Concrete tensors between files, Lua lists and C++.
#pragma once

#include <string>

#include "program/state.h"

namespace orrery::lua {

// NumPy's .npy, version 1 or 2, little-endian, C order. Errors name the file and what is wrong.
HostTensor load_npy(const std::string& path);
void save_npy(const std::string& path, const HostTensor& tensor);

}  // namespace orrery::lua
