/* SPDX-License-Identifier: Apache-2.0
 *
 * A disk that goes wrong at one call, for LD_PRELOAD. It counts the calls by which rank
 * ORRERY_TEST_RANK changes files below ORRERY_TEST_PLACE. At the call with the number
 * ORRERY_TEST_CALL the process is killed (ORRERY_TEST_FAULT=kill; a write does half its work
 * first), or the call fails with that errno, or every write from there on is short
 * (ORRERY_TEST_FAULT=short). At its end the process adds their letters to ORRERY_TEST_TRACE. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char *place, *fault, *trace;
static int at_call;
static atomic_int calls;
static char letters[1 << 16];

__attribute__((constructor)) static void begin(void) {
  const char *rank = getenv("ORRERY_RANK"), *wanted = getenv("ORRERY_TEST_RANK");
  if (wanted && strcmp(rank ? rank : "0", wanted)) return;
  place = getenv("ORRERY_TEST_PLACE"), fault = getenv("ORRERY_TEST_FAULT");
  trace = getenv("ORRERY_TEST_TRACE");
  if (getenv("ORRERY_TEST_CALL")) at_call = atoi(getenv("ORRERY_TEST_CALL"));
}

__attribute__((destructor)) static void end(void) {
  FILE* file = trace && calls ? fopen(trace, "a") : NULL;
  if (file) fprintf(file, "%s\n", letters), fclose(file);
}

static int is_there(const char* path) { return place && path && strstr(path, place); }

static int is_open_there(int fd) {
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t n = place ? readlink(link, path, sizeof path - 1) : -1;
  if (n < 0) return 0;
  path[n] = 0;
  return is_there(path);
}

/* Whether this call, which is counted, is to fail; errno is set then. */
static int fails(char letter) {
  const int call = ++calls;
  if (call < (int)sizeof letters) letters[call - 1] = letter;
  if (!fault || call != at_call || !strcmp(fault, "short")) return 0;
  if (!strcmp(fault, "kill")) raise(SIGKILL);
  errno = atoi(fault);
  return 1;
}

int mkdir(const char* path, mode_t mode) {
  if (is_there(path) && fails('m')) return -1;
  return (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
}

int open(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = flags & O_CREAT ? va_arg(more, mode_t) : 0;
  va_end(more);
  if (flags & O_CREAT && is_there(path) && fails('o')) return -1;
  return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

ssize_t write(int fd, const void* bytes, size_t count) {
  if (is_open_there(fd)) {
    if (fault && !strcmp(fault, "kill") && calls + 1 == at_call)
      syscall(SYS_write, fd, bytes, count / 2);
    if (fails('w')) return -1;
    if (fault && !strcmp(fault, "short") && calls >= at_call && count > 1000) count = 1000;
  }
  return syscall(SYS_write, fd, bytes, count);
}

int fsync(int fd) {
  if (is_open_there(fd) && fails('f')) return -1;
  return (int)syscall(SYS_fsync, fd);
}

int rename(const char* from, const char* to) {
  if (is_there(to) && fails('r')) return -1;
  return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int unlinkat(int at, const char* path, int flags) {
  if ((is_there(path) || is_open_there(at)) && fails('u')) return -1;
  return (int)syscall(SYS_unlinkat, at, path, flags);
}
