// SPDX-License-Identifier: Apache-2.0
#include "attach.h"

namespace shared {

bool copy_own(Copy copy, int process, uint64_t address, void* here, uint64_t bytes) {
  for (char* at = static_cast<char*>(here); bytes > 0;) {
    const iovec ours{at, bytes}, theirs{reinterpret_cast<void*>(address), bytes};
    const ssize_t n = copy(process, &ours, 1, &theirs, 1, 0);
    if (n <= 0) return false;
    at += n;
    address += static_cast<uint64_t>(n);
    bytes -= static_cast<uint64_t>(n);
  }
  return true;
}

}  // namespace shared
