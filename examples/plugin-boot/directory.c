/* SPDX-License-Identifier: Apache-2.0
 *
 * directory: ranks that meet in a directory which all hosts see. A shell loop may start them:
 * DIRBOOT_DIR is the directory, DIRBOOT_RANK and DIRBOOT_SIZE say who each is, DIRBOOT_LOCAL_RANK
 * and DIRBOOT_LOCAL_SIZE the same among the ranks of its host (without them all are on one).
 *
 * A value is a file. Whoever has put it holds a lock on it while he lives, so that what a killed
 * job has left is seen to be nobody's. */
#include <orrery/boot.h>
#include <orrery/host.h>
#include <orrery/plugin.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const orr_host* host;
static char own_file[PATH_MAX]; /* that this process has put; "": none */

static orr_status* failed(int32_t code, const char* path, const char* why) {
  char words[PATH_MAX + 300];
  snprintf(words, sizeof words, "%.*s: %s", PATH_MAX, path, why);
  return host->error(code, words);
}

/* A variable as a number: 0 or more. Returns 0 if it is none. */
static int number(const char* name, int32_t* out) {
  const char* text = getenv(name);
  char* end = NULL;
  const long value = text ? strtol(text, &end, 10) : -1;
  if (!text || *end || end == text || value < 0 || value > INT32_MAX) return 0;
  *out = (int32_t)value;
  return 1;
}

static orr_status* started(void* self, orr_boot_world* out) {
  (void)self;
  if (!getenv("DIRBOOT_DIR") && !getenv("DIRBOOT_RANK")) {
    snprintf(out->reason, sizeof out->reason, "DIRBOOT_DIR and DIRBOOT_RANK are not set");
    return NULL;
  }
  const char* names[] = {"DIRBOOT_RANK", "DIRBOOT_SIZE", "DIRBOOT_LOCAL_RANK",
                         "DIRBOOT_LOCAL_SIZE"};
  int32_t* values[] = {&out->rank, &out->world_size, &out->local_rank, &out->local_size};
  const int all = getenv("DIRBOOT_LOCAL_RANK") || getenv("DIRBOOT_LOCAL_SIZE") ? 4 : 2;
  for (int i = 0; i < all; ++i)
    if (!number(names[i], values[i])) return failed(ORR_INVALID, names[i], "set it to a number");
  if (!getenv("DIRBOOT_DIR"))
    return failed(ORR_INVALID, "DIRBOOT_DIR", "set it to a directory that all hosts see");
  if (all == 2) out->local_rank = out->rank, out->local_size = out->world_size;
  out->started = 1;
  return NULL;
}

static int path_of(char* path, int32_t rank, const char* key, const char* end) {
  return snprintf(path, PATH_MAX, "%s/%d.%s%s", getenv("DIRBOOT_DIR"), rank, key, end) < PATH_MAX;
}

/* Opens the file if whoever has put it lives; -1 with errno if not. */
static int open_living(const char* path) {
  struct stat facts;
  const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return -1;
  const int is_free = flock(fd, LOCK_SH | LOCK_NB) == 0;
  if (!is_free && errno == EWOULDBLOCK && fstat(fd, &facts) == 0 && facts.st_uid == geteuid())
    return fd;
  close(fd);
  errno = ENOENT;
  return -1;
}

static void remove_own(void) {
  if (own_file[0]) unlink(own_file);
}

/* The lock goes with the file's description: it is kept open until the process ends. */
static orr_status* put(void* self, const char* key, const void* value, uint64_t bytes) {
  (void)self;
  char path[PATH_MAX], made[PATH_MAX], pid[32];
  int32_t rank = 0;
  number("DIRBOOT_RANK", &rank);
  snprintf(pid, sizeof pid, ".%ld", (long)getpid());
  if (!path_of(path, rank, key, "") || !path_of(made, rank, key, pid))
    return failed(ORR_INVALID, getenv("DIRBOOT_DIR"), "the path is too long");
  const int other = open_living(path);
  if (other >= 0) {
    close(other);
    return failed(ORR_UNAVAILABLE, path,
                  "it belongs to another job that runs: give this one a DIRBOOT_DIR of its own");
  }
  const int fd = open(made, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
  if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) != 0 || write(fd, value, bytes) != (ssize_t)bytes ||
      fsync(fd) != 0 || rename(made, path) != 0) {
    const int error = errno;
    if (fd >= 0) unlink(made), close(fd);
    return failed(ORR_FAILED, made, strerror(error));
  }
  strcpy(own_file, path);
  atexit(remove_own);
  return NULL;
}

static orr_status* get(void* self, int32_t rank, const char* key, void* value, uint64_t capacity,
                       uint64_t* bytes, int64_t deadline_ns) {
  (void)self;
  char path[PATH_MAX], why[100];
  if (!path_of(path, rank, key, ""))
    return failed(ORR_INVALID, getenv("DIRBOOT_DIR"), "the path is too long");
  const struct timespec pause = {0, 10000000};
  struct timespec now, begin;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  for (;;) {
    const int fd = open_living(path);
    if (fd >= 0) {
      const ssize_t n = read(fd, value, capacity);
      close(fd);
      if (n < 0) return failed(ORR_FAILED, path, strerror(errno));
      *bytes = (uint64_t)n;
      return NULL;
    }
    if (errno != ENOENT) return failed(ORR_FAILED, path, strerror(errno));
    clock_gettime(CLOCK_MONOTONIC, &now);
    if ((now.tv_sec - begin.tv_sec) * 1000000000ll + now.tv_nsec - begin.tv_nsec > deadline_ns)
      break;
    nanosleep(&pause, NULL);
  }
  snprintf(why, sizeof why, "no living rank %d has put it for %.1f s", rank,
           (double)deadline_ns * 1e-9);
  return failed(ORR_DEADLINE, path, why);
}

static const orr_boot_api table = {sizeof(orr_boot_api), NULL, started, put, get};

static const void* get_table(void* self, const char* id, uint32_t version) {
  (void)self;
  return strcmp(id, "boot") == 0 && version == 1 ? &table : NULL;
}

static orr_status* entry(const orr_bootstrap* boot, orr_exports* out) {
  host = boot->host("host", 1);
  out->get = get_table;
  return NULL;
}

ORR_PLUGIN(0, "directory", "1.0.0", "Ranks that meet in a shared directory", entry, 1,
           {{"boot", 1, 1}})
