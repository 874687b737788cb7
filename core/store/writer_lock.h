// SPDX-License-Identifier: Apache-2.0
//
// The lock by which only one process at a time writes to a checkpoint directory, from its first
// save there until it ends. It is a lock of the kernel on a file in the directory, so it ends with
// its owner, however that dies; the file names the owner. If the file system has no locks, the
// owner in the file is looked for among the processes of this host, and that of another host must
// renew a lease (lease.h). A job that was started again takes the lock of its earlier starts
// (WriterJob), as of a host that hangs. A child of a fork shares its parent's locks.
#pragma once

#include <string>

namespace orrery {

constexpr const char* kLockFile = "checkpoint.lock";

// Makes this process the writer of the directory, which exists, or checks that it still is. Throws
// Error, beginning with `label`, that names another writer. [main thread]
void hold_writer_lock(const std::string& directory, const std::string& label);

// Removes the lock, if this process has it.
void drop_writer_lock(const std::string& directory);

}  // namespace orrery
