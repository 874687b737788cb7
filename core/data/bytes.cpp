// SPDX-License-Identifier: Apache-2.0
#include "data/bytes.h"

#include <fcntl.h>

#include <cstring>

namespace orrery {

void Bytes::read(std::byte* to, size_t count, uint64_t offset) const {
  if (file_)
    file_->read(to, count, offset);
  else
    std::memcpy(to, memory_->data() + offset, count);
}

Bytes open_bytes(const std::string& path) { return File::open(AT_FDCWD, path, path, true); }

}  // namespace orrery
