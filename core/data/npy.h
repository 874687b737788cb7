// SPDX-License-Identifier: Apache-2.0
//
// NumPy's .npy: versions 1 to 3, C order, either order of bytes. Errors name the file and what is
// wrong with it; no number of the header is believed before it fits into the file.
#pragma once

#include "data/columns.h"
#include "program/state.h"

namespace orrery {

struct NpyFile {
  Bytes bytes;
  Type type;  // as the engine holds it
  Elements elements;
  uint64_t offset;  // of the first element
};

NpyFile open_npy(const std::string& path);
HostTensor load_npy(const std::string& path);
void save_npy(const std::string& path, const HostTensor& tensor);

}  // namespace orrery
