// SPDX-License-Identifier: Apache-2.0
//
// The calls that change a disk (mkdir, write, pwrite, fsync, rename, unlinkat) and pread,
// replaced for the whole test program by ones that can be told to fail, to stop halfway, or to end
// the process.
#pragma once

#include <string>

namespace orrery::faults {

// Back to the kernel's own calls, and counting from 0.
void clear();
// The `call`-th call from now, counting from 1, ends the process; a write does half its work first.
void kill_at(int call);
// The `call`-th call from now fails with `error`.
void fail_at(int call, int error);
// The next so many calls of pread fail with `error`.
void fail_reads(int count, int error);
// Every write, and every pread, moves at most 7 bytes; every third one is interrupted.
void short_writes();

// Whether the file system has no locks: fcntl refuses them. Not undone by clear().
void no_locks(bool none);

// Since clear(): how many calls, and which, by first letter.
int calls();
const std::string& trace();
// Since the failure of fail_at().
int fsyncs_after_failure();

}  // namespace orrery::faults
