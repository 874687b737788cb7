// SPDX-License-Identifier: Apache-2.0
//
// Where the files of a tar archive lie in it, by libarchive.
#pragma once

#include <string>
#include <vector>

#include "../bytes.h"

namespace data {

struct TarEntry {
  std::string name;
  uint64_t offset, size;
};

// The regular files of an archive, in its order. Throws Error that names it, also for one that is
// cut short.
std::vector<TarEntry> tar_entries(const Bytes& archive);

}  // namespace data
