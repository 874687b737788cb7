/* SPDX-License-Identifier: Apache-2.0
 *
 * A disk that takes its time, for LD_PRELOAD: a process's first fsync takes the seconds that
 * ORRERY_TEST_FSYNC says, or the one after as many as ORRERY_TEST_BEFORE says. The one with the
 * number ORRERY_TEST_KILL kills the process instead. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int fsync(int fd) {
  static int done = 0;
  const char* seconds = getenv("ORRERY_TEST_FSYNC");
  const char* before = getenv("ORRERY_TEST_BEFORE");
  if (seconds && done++ == (before ? atoi(before) : 0)) {
    struct timespec wait = {atoi(seconds), 0};
    nanosleep(&wait, NULL);
  }
  const char* killed = getenv("ORRERY_TEST_KILL");
  static int count = 0;
  if (killed && ++count == atoi(killed)) kill(getpid(), SIGKILL);
  return (int)syscall(SYS_fsync, fd);
}
