// SPDX-License-Identifier: Apache-2.0
#include "faults.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <string>

namespace orrery::faults {
namespace {

struct State {
  int count = 0, kill_call = INT_MAX, fail_call = INT_MAX, error = 0, late_fsyncs = 0, reads = 0;
  int failing_reads = 0;
  bool short_writes = false;
  std::string trace;
};
State state;
bool without_locks = false;

bool counted_call_fails(char letter) {
  state.trace += letter;
  ++state.count;
  if (state.count == state.kill_call) ::raise(SIGKILL);
  if (state.count != state.fail_call) return false;
  errno = state.error;
  return true;
}

}  // namespace

void clear() { state = {}; }
void kill_at(int call) { clear(), state.kill_call = call; }
void fail_at(int call, int error) { clear(), state.fail_call = call, state.error = error; }
void fail_reads(int count, int error) { clear(), state.failing_reads = count, state.error = error; }
void no_locks(bool none) { without_locks = none; }
void short_writes() { clear(), state.short_writes = true; }
int calls() { return state.count; }
const std::string& trace() { return state.trace; }
int fsyncs_after_failure() { return state.late_fsyncs; }

}  // namespace orrery::faults

namespace faults = orrery::faults;

extern "C" {

int mkdir(const char* path, mode_t mode) {
  if (faults::counted_call_fails('m')) return -1;
  return static_cast<int>(::syscall(SYS_mkdirat, AT_FDCWD, path, mode));
}

ssize_t write(int fd, const void* bytes, size_t count) {
  if (faults::state.count + 1 == faults::state.kill_call)
    ::syscall(SYS_write, fd, bytes, count / 2);
  if (faults::counted_call_fails('w')) return -1;
  if (faults::state.short_writes) {
    if (faults::state.count % 3 == 0) return errno = EINTR, -1;
    count = std::min<size_t>(count, 7);
  }
  return ::syscall(SYS_write, fd, bytes, count);
}

// Files that stay open for reading and writing (spill_file.h).
ssize_t pwrite(int fd, const void* bytes, size_t count, off_t offset) {
  if (faults::counted_call_fails('p')) return -1;
  if (faults::state.short_writes) {
    if (faults::state.count % 3 == 0) return errno = EINTR, -1;
    count = std::min<size_t>(count, 7);
  }
  return ::syscall(SYS_pwrite64, fd, bytes, count, offset);
}

ssize_t pread(int fd, void* bytes, size_t count, off_t offset) {
  if (faults::state.failing_reads > 0) {
    --faults::state.failing_reads;
    return errno = faults::state.error, -1;
  }
  if (faults::state.short_writes) {
    if (++faults::state.reads % 3 == 0) return errno = EINTR, -1;
    count = std::min<size_t>(count, 7);
  }
  return ::syscall(SYS_pread64, fd, bytes, count, offset);
}

int fcntl64(int fd, int command, ...) {
  va_list more;
  va_start(more, command);
  void* argument = va_arg(more, void*);
  va_end(more);
  if (command == F_OFD_SETLK && faults::without_locks) return errno = ENOLCK, -1;
  return static_cast<int>(::syscall(SYS_fcntl, fd, command, argument));
}

int fsync(int fd) {
  faults::state.late_fsyncs += faults::state.count >= faults::state.fail_call;
  if (faults::counted_call_fails('f')) return -1;
  return static_cast<int>(::syscall(SYS_fsync, fd));
}

int rename(const char* from, const char* to) noexcept {
  if (faults::counted_call_fails('r')) return -1;
  return static_cast<int>(::syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}

int unlinkat(int at, const char* path, int flags) noexcept {
  if (faults::counted_call_fails('u')) return -1;
  return static_cast<int>(::syscall(SYS_unlinkat, at, path, flags));
}

}  // extern "C"
