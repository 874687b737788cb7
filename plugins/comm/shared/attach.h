// SPDX-License-Identifier: Apache-2.0
//
// Another process's own memory, from and to which the kernel copies where it lets ranks do so.
#pragma once

#include <sys/uio.h>

#include <cstdint>

namespace shared {

using Copy = decltype(&process_vm_readv);  // to here, or process_vm_writev, from here

// Between here and what lies at `address` in that process of this host. False, and errno, when the
// kernel refuses.
bool copy_own(Copy copy, int process, uint64_t address, void* here, uint64_t bytes);

}  // namespace shared
