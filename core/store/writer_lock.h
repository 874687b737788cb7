// SPDX-License-Identifier: Apache-2.0
//
// One process at a time writes to a checkpoint directory: from its first save there until it ends.
// The lock is the kernel's, on a file in the directory: it ends with its owner, however that
// dies; the file says who the owner is. Where a file system has no locks, what the file says is
// held against the processes of this host. A child of a fork shares its parent's locks.
#pragma once

#include <string>

namespace orrery {

constexpr const char* kLockFile = "checkpoint.lock";

// Makes this process the writer of `directory`, which exists, or finds that it still is. Throws
// Error, beginning with `label`, that names the other writer. [main thread]
void hold_writer_lock(const std::string& directory, const std::string& label);

// Removes the lock, if this process has it.
void drop_writer_lock(const std::string& directory);

}  // namespace orrery
