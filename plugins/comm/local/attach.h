// SPDX-License-Identifier: Apache-2.0
//
// A peer's private memory, read and written through the kernel (cross memory attach,
// process_vm_readv(2)): one copy where shared memory takes two. Containers and security modules may
// forbid it, and some kernels are slow at it.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace local {

// Where the Yama module guards processes, lets those that our starter has started reach this one.
void admit_siblings();

// 0, or an errno: ESRCH when the peer is gone.
int attached_read(pid_t peer, uint64_t from, void* to, uint64_t bytes);
int attached_write(pid_t peer, uint64_t to, const void* from, uint64_t bytes);

// Whether reading `bytes` of the peer at `address` works, and takes no longer than copying them twice.
bool attaching_pays(pid_t peer, uint64_t address, uint64_t bytes);

}  // namespace local
