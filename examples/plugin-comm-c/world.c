/* SPDX-License-Identifier: Apache-2.0
 *
 * How ranks come together, in a world and in its parts. */
#define _GNU_SOURCE
#include "sockets.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { MOST_PLACE = 90 }; /* of a name: an address has 107 characters */

void destroy(orr_comm* comm) {
  if (!comm) return;
  tell(comm, "");
  for (int r = 0; r < comm->size; ++r)
    for (int k = DATA; k <= CONTROL; ++k)
      if (comm->peers[r].fd[k] >= 0) close(comm->peers[r].fd[k]);
  pthread_mutex_destroy(&comm->mutex);
  free(comm->peers);
  free(comm);
}

static orr_comm* make(const orr_comm_boot* boot, const char* place, int rank, int size) {
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
  for (int r = 0; r < size; ++r) peers[r] = (peer){{-1, -1}, r, 0};
  pthread_mutex_init(&comm->mutex, NULL);
  return comm;
}

/* A name that only the ranks of this job look for. It has no file: Linux forgets it with its
 * socket. */
static socklen_t address_of(const orr_comm* comm, int r, struct sockaddr_un* to) {
  memset(to, 0, sizeof *to);
  to->sun_family = AF_UNIX;
  const int n =
      snprintf(to->sun_path + 1, sizeof to->sun_path - 1, "%.*s.%d", MOST_PLACE, comm->place, r);
  return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

static int is_ours(int fd) {
  struct ucred who;
  socklen_t n = sizeof who;
  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) == 0 && who.uid == geteuid();
}

/* Two sockets to rank r, which listens already or will: each says whose it is and what for. */
static int connect_to(orr_comm* comm, int r, int64_t until) {
  struct sockaddr_un to;
  const socklen_t n = address_of(comm, r, &to);
  for (int32_t kind = DATA; kind <= CONTROL; ++kind) {
    const int32_t card[2] = {comm->rank, kind};
    const struct timespec moment = {0, 1000000};
    const int fd = comm->peers[r].fd[kind] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    while (connect(fd, (struct sockaddr*)&to, n) != 0) {
      if (now_ns() > until || comm->boot.dead(comm->boot.store, comm->peers[r].world)) return 0;
      nanosleep(&moment, NULL);
    }
    if (!is_ours(fd) || send(fd, card, sizeof card, MSG_NOSIGNAL) != sizeof card) return 0;
  }
  return 1;
}

static int take_in(orr_comm* comm, int listener, int64_t until) {
  for (int missing = 2 * (comm->size - 1 - comm->rank); missing > 0;) {
    struct pollfd ready = {listener, POLLIN, 0};
    int32_t card[2];
    const int64_t left = (until - now_ns()) / 1000000;
    if (left <= 0) return 0;
    if (poll(&ready, 1, left < 100 ? (int)left : 100) <= 0) {
      for (int r = comm->rank + 1; r < comm->size; ++r)
        if (comm->boot.dead(comm->boot.store, comm->peers[r].world)) return 0;
      continue;
    }
    const int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    const int known =
        fd >= 0 && is_ours(fd) && recv(fd, card, sizeof card, MSG_WAITALL) == sizeof card &&
        card[0] > comm->rank && card[0] < comm->size && (card[1] == DATA || card[1] == CONTROL);
    if (known && comm->peers[card[0]].fd[card[1]] < 0)
      comm->peers[card[0]].fd[card[1]] = fd, --missing;
    else if (fd >= 0)
      close(fd);
  }
  return 1;
}

static orr_status* join(orr_comm* comm) {
  struct sockaddr_un here;
  const socklen_t n = address_of(comm, comm->rank, &here);
  const int64_t until = now_ns() + comm->boot.deadline_ns;
  const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  int good = listener >= 0 && bind(listener, (struct sockaddr*)&here, n) == 0 &&
             listen(listener, 2 * comm->size) == 0;
  for (int r = 0; r < comm->rank && good; ++r) good = connect_to(comm, r, until);
  good = good && take_in(comm, listener, until);
  if (listener >= 0) close(listener);
  return good ? NULL : host->error(ORR_RETRY, "sockets: not all ranks of a communicator have come");
}

orr_status* world(void* self, const orr_comm_boot* boot, orr_comm** out) {
  char place[160];
  orr_comm* comm;
  orr_status* status;
  (void)self;
  if (boot->local_size != boot->world_size)
    return host->error(ORR_UNAVAILABLE,
                       "sockets: joins the ranks of one host only; use another --comm");
  snprintf(place, sizeof place, "orrery-sockets-%s", boot->job);
  if (!(comm = make(boot, place, boot->rank, boot->world_size)))
    return host->error(ORR_FAILED, "sockets: no memory");
  if ((status = join(comm)))
    destroy(comm);
  else
    *out = comm;
  return status;
}

/* The ranks' colors and keys into all[2 * r]. */
static orr_status* tell_colors(orr_comm* comm, int32_t* mine, int32_t* all) {
  orr_memory from = {.size = sizeof from, .bytes = 8, .host = mine},
             to = {.size = sizeof to, .bytes = 8 * (uint64_t)comm->size, .host = all};
  orr_coll* ops = calloc(2 * (size_t)comm->size, sizeof *ops);
  orr_status* status = ops ? NULL : host->error(ORR_FAILED, "sockets: no memory");
  orr_work* work;
  for (int r = 0; r < comm->size && !status; ++r) {
    ops[2 * r] = (orr_coll){.size = sizeof *ops,
                            .op = ORR_COLL_SEND,
                            .dtype = ORR_I32,
                            .root_or_peer = r,
                            .count = 2,
                            .send = {&from, 0, 8},
                            .name = "split"};
    ops[2 * r + 1] = (orr_coll){.size = sizeof *ops,
                                .op = ORR_COLL_RECV,
                                .dtype = ORR_I32,
                                .root_or_peer = r,
                                .count = 2,
                                .recv = {&to, 8 * (uint64_t)r, 8},
                                .name = "split"};
  }
  if (!status) status = post(comm, ops, 2 * comm->size, &work);
  free(ops);
  return status;
}

/* Those of this color, ordered by key, then rank; not joined yet. */
static orr_comm* child_of(const orr_comm* parent, const int32_t* all, int32_t color,
                          const char* place) {
  int size = 0;
  orr_comm* child;
  for (int r = 0; r < parent->size; ++r) size += all[2 * r] == color;
  if (!(child = make(&parent->boot, place, 0, size))) return NULL;
  for (int r = 0; r < parent->size; ++r) {
    int before = 0;
    if (all[2 * r] != color) continue;
    for (int q = 0; q < parent->size; ++q)
      before += all[2 * q] == color &&
                (all[2 * q + 1] < all[2 * r + 1] || (all[2 * q + 1] == all[2 * r + 1] && q < r));
    child->peers[before].world = parent->peers[r].world;
    if (r == parent->rank) child->rank = before;
  }
  return child;
}

orr_status* split(orr_comm* parent, int32_t color, int32_t key, orr_comm** out) {
  int32_t mine[2] = {color, key}, *all = malloc((size_t)parent->size * sizeof mine);
  orr_status* status =
      all ? tell_colors(parent, mine, all) : host->error(ORR_FAILED, "sockets: no memory");
  char place[160];
  *out = NULL;
  if (snprintf(place, sizeof place, "%.140s-%d.%d", parent->place, parent->splits++, color) >
          MOST_PLACE &&
      !status)
    status =
        host->error(ORR_FAILED, "sockets: communicators are split too often, one within the other");
  if (!status && color >= 0) {
    orr_comm* child = child_of(parent, all, color, place);
    status = child ? join(child) : host->error(ORR_FAILED, "sockets: no memory");
    if (status)
      destroy(child);
    else
      *out = child;
  }
  free(all);
  return status;
}
