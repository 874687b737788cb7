// SPDX-License-Identifier: Apache-2.0
//
// The locks by which only one process at a time writes to a checkpoint directory, from its first
// save there until it ends, and only one job at a time to a run's directory. Each is a lock of the
// kernel on a file in the directory, so it ends with its owner, however that dies; the file names
// the owner. If the file system has no locks, the owner in the file is looked for among the
// processes of this host, and that of another host must renew a lease (lease.h). A job that was
// started again takes the lock of its earlier starts (WriterJob), as of a host that hangs. A child
// of a fork shares its parent's locks.
#pragma once

#include <string>

#include "base/error.h"

namespace orrery {

constexpr const char* kLockFile = "checkpoint.lock";

// A file that is locked; in messages, what its owner does in the directory, and what to do about
// it.
struct LockKind {
  const char *file, *does, *is_doing, *do_there, *remedy;
};
inline constexpr LockKind kSaving{kLockFile, "saves", "is saving", "save",
                                  "save under another name"};
inline constexpr LockKind kRunning{"run.lock", "writes", "is writing", "write",
                                   "name another directory"};

// Another process is the writer.
struct Locked : Error {
  explicit Locked(const std::string& message) : Error(ORR_FAILED, message) {}
};

// Makes this process the writer of the directory, which exists, or checks that it still is. Throws
// Locked that names another writer, or Error where the lock cannot be written; both begin with
// `label`. [main thread]
void hold_writer_lock(const std::string& directory, const std::string& label,
                      const LockKind& kind = kSaving);

// Removes the lock, if this process has it.
void drop_writer_lock(const std::string& directory, const LockKind& kind = kSaving);

// The writer of the directory in words, "process 12 on host a"; "" if there is none alive.
std::string living_writer(const std::string& directory, const LockKind& kind);

}  // namespace orrery
