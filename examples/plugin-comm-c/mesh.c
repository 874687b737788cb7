/* SPDX-License-Identifier: Apache-2.0
 *
 * Forming and ending a mesh: every rank listens under a name that the others know and connects to the
 * ranks below its own. */
#define _GNU_SOURCE
#include "sockets.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* Who calls: the first bytes on a new connection. */
typedef struct caller {
  int32_t rank, is_news;
} caller;

/* In Linux's abstract namespace: nothing to clean up, and gone with its process. */
static socklen_t address_of(const char* place, int rank, struct sockaddr_un* out) {
  memset(out, 0, sizeof *out);
  out->sun_family = AF_UNIX;
  const int n = snprintf(out->sun_path + 1, sizeof out->sun_path - 1, "orrery-sockets-%s-%d", place, rank);
  return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

int mesh_listen(const char* place, int rank) {
  struct sockaddr_un address;
  const socklen_t length = address_of(place, rank, &address);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || bind(fd, (struct sockaddr*)&address, length) != 0 || listen(fd, 4096) != 0) {
    if (fd >= 0) close(fd);
    return -1;
  }
  return fd;
}

/* Abstract names are open to every user of the machine. */
static int is_ours(int fd) {
  struct ucred who;
  socklen_t length = sizeof who;
  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &length) == 0 && who.uid == geteuid();
}

static orr_status* trouble(const orr_comm* comm, const char* what) {
  char words[WORDS];
  snprintf(words, sizeof words, "rank %d: cannot %s (%s) while the ranks of mesh '%s' meet", comm->rank, what, strerror(errno),
           comm->place);
  return host->error(ORR_FAILED, words);
}

static orr_status* call(orr_comm* comm, int to, int is_news, int* out) {
  struct sockaddr_un address;
  const socklen_t length = address_of(comm->place, comm->peers[to].world, &address);
  const caller me = {comm->rank, is_news};
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return trouble(comm, "make a socket");
  *out = fd;
  if (connect(fd, (struct sockaddr*)&address, length) != 0 || !is_ours(fd) || send(fd, &me, sizeof me, MSG_NOSIGNAL) != sizeof me)
    return trouble(comm, "connect");
  return NULL;
}

/* The next caller; strangers are hung up on. */
static orr_status* answer(orr_comm* comm, int listener) {
  struct timeval patience = {5, 0};
  for (;;) {
    struct pollfd ready = {listener, POLLIN, 0};
    caller who;
    if (poll(&ready, 1, (int)(comm->boot.deadline_ns / 1000000) + 1) <= 0) {
      errno = ETIMEDOUT;
      return trouble(comm, "hear from all of them");
    }
    const int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0) return trouble(comm, "accept");
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (is_ours(fd) && recv(fd, &who, sizeof who, MSG_WAITALL) == sizeof who && who.rank > comm->rank && who.rank < comm->size) {
      *(who.is_news ? &comm->peers[who.rank].news : &comm->peers[who.rank].data) = fd;
      return NULL;
    }
    close(fd);
  }
}

orr_status* mesh_connect(orr_comm* comm, int listener, const int* names) {
  orr_status* status = NULL;
  for (int r = 0; r < comm->size; ++r) comm->peers[r].world = names[r];
  for (int r = 0; r < comm->rank && !status; ++r) {
    status = call(comm, r, 0, &comm->peers[r].data);
    if (!status) status = call(comm, r, 1, &comm->peers[r].news);
  }
  for (int n = 2 * (comm->size - 1 - comm->rank); n > 0 && !status; --n) status = answer(comm, listener);
  close(listener);
  return status;
}

orr_comm* mesh_make(const orr_comm_boot* boot, const char* place, int rank, int size) {
  orr_comm* comm = calloc(1, sizeof *comm);
  peer* peers = calloc((size_t)size, sizeof *peers);
  if (!comm || !peers) {
    free(comm);
    free(peers);
    return NULL;
  }
  memcpy(&comm->boot, boot, boot->size < sizeof *boot ? boot->size : sizeof *boot);
  snprintf(comm->place, sizeof comm->place, "%s", place);
  comm->rank = rank, comm->size = size, comm->peers = peers;
  for (int r = 0; r < size; ++r) peers[r].data = peers[r].news = -1;
  pthread_mutex_init(&comm->mutex, NULL);
  return comm;
}

void mesh_destroy(orr_comm* comm) {
  if (!comm) return;
  for (int r = 0; r < comm->size; ++r) {
    if (comm->peers[r].data >= 0) close(comm->peers[r].data);
    if (comm->peers[r].news >= 0) close(comm->peers[r].news);
  }
  pthread_mutex_destroy(&comm->mutex);
  free(comm->peers);
  free(comm);
}
