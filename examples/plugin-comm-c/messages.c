/* SPDX-License-Identifier: Apache-2.0
 *
 * A group of sends and receives, all of them at once: whichever socket is ready moves on, so that no order
 * of starts can block. Messages of a pair match in order; head and tail of each have to agree. */
#define _GNU_SOURCE
#include "sockets.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

/* In front of each message, as it is in memory: both ends are one machine. */
typedef struct head {
  int64_t count;
  int32_t dtype, tag;
  char name[WORDS / 4];
} head;

/* A message on its way: its head, then its bytes. */
typedef struct transfer {
  const orr_coll* op;
  head mine, theirs; /* of a receive, what is due and what came */
  size_t moved, bytes;
} transfer;

static int is_send(const transfer* t) { return t->op->op == ORR_COLL_SEND; }
static int is_done(const transfer* t) { return t->moved == sizeof(head) + t->bytes; }

static int64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* The news of a failure: its code, then words. */
typedef struct news {
  int32_t code;
  char words[WORDS];
} news;

static orr_status* failure_of(orr_comm* comm) {
  return comm->code == ORR_OK ? NULL : host->error(comm->code, comm->failure);
}

static void fail_locked(orr_comm* comm, int32_t code, const char* words) {
  if (comm->code != ORR_OK) return;
  comm->code = code;
  snprintf(comm->failure, sizeof comm->failure, "%s", words);
}

orr_status* poison(orr_comm* comm, int32_t code, const char* words) {
  news told = {0};
  pthread_mutex_lock(&comm->mutex);
  fail_locked(comm, code, words);
  told.code = comm->code;
  snprintf(told.words, sizeof told.words, "%s", comm->failure);
  for (int r = 0; r < comm->size; ++r) /* who cannot listen any more has ended */
    if (comm->peers[r].news >= 0) (void)!send(comm->peers[r].news, &told, sizeof told, MSG_NOSIGNAL | MSG_DONTWAIT);
  orr_status* status = failure_of(comm);
  pthread_mutex_unlock(&comm->mutex);
  return status;
}

orr_status* async_error(orr_comm* comm) {
  news told;
  pthread_mutex_lock(&comm->mutex);
  for (int r = 0; r < comm->size && comm->code == ORR_OK; ++r)
    if (comm->peers[r].news >= 0 && recv(comm->peers[r].news, &told, sizeof told, MSG_DONTWAIT) == sizeof told) {
      told.words[WORDS - 1] = 0;
      fail_locked(comm, told.code, told.words);
    }
  orr_status* status = failure_of(comm);
  pthread_mutex_unlock(&comm->mutex);
  return status;
}

static orr_status* complain(orr_comm* comm, int32_t code, const transfer* t, const char* what) {
  char words[WORDS];
  snprintf(words, sizeof words, "rank %d %s in %s (%s)", t->op->root_or_peer, what, t->mine.name, t->op->where ? t->op->where : "");
  return poison(comm, code, words);
}

/* A peer that has closed its end has died, or given up for a reason that it has told before. */
static orr_status* lost(orr_comm* comm, const transfer* t) {
  orr_status* told = async_error(comm);
  return told ? told : complain(comm, ORR_RETRY, t, "died");
}

static orr_status* check_head(orr_comm* comm, const transfer* t) {
  char words[WORDS];
  if (t->mine.count == t->theirs.count && t->mine.dtype == t->theirs.dtype && t->mine.tag == t->theirs.tag) return NULL;
  snprintf(words, sizeof words, "ranks disagree: rank %d is in %s (%lld of dtype %d, tag %d), rank %d in %.*s (%lld of dtype %d, tag %d)",
           comm->rank, t->mine.name, (long long)t->mine.count, t->mine.dtype, t->mine.tag, t->op->root_or_peer,
           (int)sizeof t->theirs.name - 1, t->theirs.name, (long long)t->theirs.count, t->theirs.dtype, t->theirs.tag);
  return poison(comm, ORR_FAILED, words);
}

/* Moves what the socket takes or has. *moved: whether that was anything. */
static orr_status* move(orr_comm* comm, transfer* t, int* moved) {
  const int fd = comm->peers[t->op->root_or_peer].data;
  while (!is_done(t)) {
    const int in_head = t->moved < sizeof(head);
    char* whole = in_head ? (char*)(is_send(t) ? &t->mine : &t->theirs) : orr_buffer_host(is_send(t) ? &t->op->send : &t->op->recv);
    char* at = whole + (in_head ? t->moved : t->moved - sizeof(head));
    const size_t left = (in_head ? sizeof(head) : sizeof(head) + t->bytes) - t->moved;
    const ssize_t n = is_send(t) ? send(fd, at, left, MSG_NOSIGNAL | MSG_DONTWAIT) : recv(fd, at, left, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return NULL;
    if (n <= 0) return lost(comm, t);
    t->moved += (size_t)n;
    *moved = 1;
    orr_status* status = !is_send(t) && in_head && t->moved == sizeof(head) ? check_head(comm, t) : NULL;
    if (status) return status;
  }
  return NULL;
}

/* Of the messages of a pair in one direction the first that is not done is the one that moves. */
static int is_first(const transfer* all, int32_t i) {
  for (int32_t k = 0; k < i; ++k)
    if (!is_done(&all[k]) && is_send(&all[k]) == is_send(&all[i]) && all[k].op->root_or_peer == all[i].op->root_or_peer) return 0;
  return !is_done(&all[i]);
}

/* Waits for any of the sockets, but not for long: peers may die, other threads may abort. */
static orr_status* rest(orr_comm* comm, const transfer* all, int32_t n, struct pollfd* ready, int64_t begun) {
  char words[WORDS / 4];
  const transfer* waiting = NULL;
  int count = 0;
  for (int32_t i = 0; i < n; ++i) {
    if (!is_first(all, i)) continue;
    if (!waiting) waiting = &all[i];
    ready[count++] = (struct pollfd){comm->peers[all[i].op->root_or_peer].data, is_send(&all[i]) ? POLLOUT : POLLIN, 0};
  }
  if (poll(ready, (nfds_t)count, 10) > 0) return NULL;
  orr_status* status = async_error(comm);
  if (status) return status;
  for (int32_t i = 0; i < n; ++i)
    if (is_first(all, i) && comm->boot.dead(comm->boot.store, comm->peers[all[i].op->root_or_peer].world)) return lost(comm, &all[i]);
  const int64_t patience = waiting->op->deadline_ns > 0 ? waiting->op->deadline_ns : comm->boot.deadline_ns;
  if (now_ns() - begun < patience) return NULL;
  snprintf(words, sizeof words, "has not answered for %g s", (double)patience * 1e-9);
  return complain(comm, ORR_DEADLINE, waiting, words);
}

static orr_status* move_all(orr_comm* comm, transfer* all, int32_t n, struct pollfd* ready) {
  int64_t begun = now_ns();
  for (;;) {
    int moved = 0, left = 0;
    for (int32_t i = 0; i < n; ++i) {
      orr_status* status = is_first(all, i) ? move(comm, &all[i], &moved) : NULL;
      if (status) return status;
      left += !is_done(&all[i]);
    }
    if (left == 0) return NULL;
    if (moved) begun = now_ns(); /* a sign of life */
    orr_status* status = moved ? NULL : rest(comm, all, n, ready, begun);
    if (status) return status;
  }
}

orr_status* exchange(orr_comm* comm, const orr_coll* ops, int32_t n) {
  transfer* all = calloc((size_t)n, sizeof *all);
  struct pollfd* ready = calloc((size_t)n, sizeof *ready);
  orr_status* status = all && ready ? NULL : host->error(ORR_FAILED, "no memory for a group of messages");
  for (int32_t i = 0; i < n && !status; ++i) {
    transfer* t = &all[i];
    t->op = &ops[i];
    t->mine = (head){.count = ops[i].count, .dtype = ops[i].dtype, .tag = ops[i].tag};
    snprintf(t->mine.name, sizeof t->mine.name, "'%.100s'", ops[i].name ? ops[i].name : "a message");
    t->bytes = (size_t)(ops[i].count * orr_dtype_bytes(ops[i].dtype));
  }
  if (!status) status = move_all(comm, all, n, ready);
  for (int32_t i = 0; i < n && !status; ++i)
    if (is_send(&all[i])) comm->bytes_sent += all[i].bytes;
  free(all);
  free(ready);
  return status;
}
