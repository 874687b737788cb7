/* SPDX-License-Identifier: Apache-2.0
 *
 * Sends and receives of a group, moved together as far as sockets take them. */
#define _GNU_SOURCE
#include "sockets.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* What goes before the bytes of a message, and what both ends have to agree on. */
typedef struct head {
  int64_t count;
  int32_t dtype, tag;
  char words[96]; /* name and place, for people */
} head;

/* A message under way: `done` bytes of head and body. */
typedef struct transfer {
  const orr_coll* op;
  head front;
  uint64_t done;
} transfer;

static uint64_t body_bytes(const orr_coll* c) {
  return (uint64_t)(c->count * orr_dtype_bytes(c->dtype));
}

static const orr_buffer* buffer_of(const orr_coll* c) {
  return c->op == ORR_COLL_SEND ? &c->send : &c->recv;
}

static transfer start(const orr_coll* c) {
  transfer t = {c, {c->count, c->dtype, c->tag, ""}, 0};
  snprintf(t.front.words, sizeof t.front.words, "'%s' (%s)", c->name ? c->name : "",
           c->where ? c->where : "");
  return t;
}

static int is_over(const transfer* t) { return t->done == sizeof t->front + body_bytes(t->op); }

static orr_status* check_ends(orr_comm* comm, const transfer* t, const head* mine) {
  char words[WORDS];
  const head* theirs = &t->front;
  if (theirs->count == mine->count && theirs->dtype == mine->dtype && theirs->tag == mine->tag)
    return NULL;
  snprintf(words, sizeof words,
           "rank %d sends %lld of dtype %d, tag %d, %.95s; rank %d receives %lld of dtype %d, tag "
           "%d, %.95s",
           t->op->root_or_peer, (long long)theirs->count, theirs->dtype, theirs->tag, theirs->words,
           comm->rank, (long long)mine->count, mine->dtype, mine->tag, mine->words);
  return end_all(comm, ORR_FAILED, words);
}

/* Moves what can be moved now; adds to *moved. */
static orr_status* advance(orr_comm* comm, transfer* t, int64_t* moved) {
  const int out = t->op->op == ORR_COLL_SEND, fd = comm->peers[t->op->root_or_peer].fd[DATA];
  const transfer mine = start(t->op);
  while (!is_over(t)) {
    const uint64_t in_head = sizeof t->front, body = t->done < in_head ? 0 : t->done - in_head;
    char* at = t->done < in_head ? (char*)&t->front + t->done
                                 : (char*)orr_buffer_host(buffer_of(t->op)) + body;
    const size_t left = (size_t)(t->done < in_head ? in_head - t->done : body_bytes(t->op) - body);
    const ssize_t n =
        out ? send(fd, at, left, MSG_NOSIGNAL | MSG_DONTWAIT) : recv(fd, at, left, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return NULL;
    if (n <= 0) {
      orr_status* status = heard_from(comm, t->op->root_or_peer);
      return status ? status : complain(comm, ORR_RETRY, t->op->root_or_peer, "died", t->op);
    }
    t->done += (uint64_t)n, *moved += n;
    if (!out && t->done >= in_head && t->done - (uint64_t)n < in_head) {
      orr_status* status = check_ends(comm, t, &mine.front);
      if (status) return status;
    }
  }
  return NULL;
}

/* Whether an earlier transfer of this direction and peer is not over: those are in order. */
static int has_to_wait(const transfer* all, int32_t i) {
  for (int32_t k = 0; k < i; ++k)
    if (!is_over(&all[k]) && all[k].op->op == all[i].op->op &&
        all[k].op->root_or_peer == all[i].op->root_or_peer)
      return 1;
  return 0;
}

/* Moves what all can move; *waits gets a transfer that waits, or NULL. */
static orr_status* sweep(orr_comm* comm, transfer* all, int32_t n, int64_t* moved,
                         const transfer** waits) {
  orr_status* status = NULL;
  *waits = NULL;
  for (int32_t i = 0; i < n && !status; ++i) {
    if (is_over(&all[i]) || has_to_wait(all, i)) continue;
    status = advance(comm, &all[i], moved);
    if (!is_over(&all[i]) && (!*waits || all[i].op->op == ORR_COLL_RECV)) *waits = &all[i];
  }
  return status;
}

/* Sleeps until something may move. A peer that is not waited for here may have died, too. */
static orr_status* pause_for(orr_comm* comm, const transfer* all, int32_t n,
                             const transfer* waits) {
  struct pollfd* fds = calloc((size_t)(n + comm->size), sizeof *fds);
  orr_status* status = NULL;
  if (!fds) return poison(comm, ORR_FAILED, "no memory");
  for (int32_t i = 0; i < n; ++i) {
    const int idle = is_over(&all[i]) || has_to_wait(all, i);
    fds[i].fd = idle ? -1 : comm->peers[all[i].op->root_or_peer].fd[DATA];
    fds[i].events = all[i].op->op == ORR_COLL_SEND ? POLLOUT : POLLIN;
  }
  for (int r = 0; r < comm->size; ++r)
    fds[n + r].fd = comm->peers[r].left ? -1 : comm->peers[r].fd[CONTROL],
            fds[n + r].events = POLLIN;
  poll(fds, (nfds_t)(n + comm->size), 20);
  for (int r = 0; r < comm->size && !status; ++r) {
    if (!fds[n + r].revents) continue;
    status = heard_from(comm, r);
    if (!status && !comm->peers[r].left && comm->boot.dead(comm->boot.store, comm->peers[r].world))
      status = complain(comm, ORR_RETRY, r, "died", waits->op);
  }
  free(fds);
  return status;
}

static orr_status* move_all(orr_comm* comm, transfer* all, int32_t n) {
  int64_t since = now_ns();
  for (;;) {
    int64_t moved = 0;
    const transfer* waits;
    orr_status* status = sweep(comm, all, n, &moved, &waits);
    if (status || !waits) return status;
    const int64_t patience =
        waits->op->deadline_ns > 0 ? waits->op->deadline_ns : comm->boot.deadline_ns;
    if (moved > 0) since = now_ns();
    if (now_ns() - since > patience) {
      char words[64];
      snprintf(words, sizeof words, "has not answered for %g s", (double)patience * 1e-9);
      return complain(comm, ORR_DEADLINE, waits->op->root_or_peer, words, waits->op);
    }
    if ((status = pause_for(comm, all, n, waits))) return status;
  }
}

/* Messages to oneself: the k-th send meets the k-th receive. */
static orr_status* to_self(orr_comm* comm, const orr_coll* ops, int32_t n) {
  int32_t from = 0;
  for (int32_t i = 0; i < n; ++i) {
    if (ops[i].op != ORR_COLL_RECV || ops[i].root_or_peer != comm->rank) continue;
    while (from < n && (ops[from].op != ORR_COLL_SEND || ops[from].root_or_peer != comm->rank))
      ++from;
    if (from == n || body_bytes(&ops[from]) != body_bytes(&ops[i]) || ops[from].tag != ops[i].tag)
      return complain(comm, ORR_FAILED, comm->rank, "sends itself something else", &ops[i]);
    if (ops[i].count > 0)
      memmove(orr_buffer_host(&ops[i].recv), orr_buffer_host(&ops[from].send),
              (size_t)body_bytes(&ops[i]));
    ++from;
  }
  return NULL;
}

static orr_status* check_descriptor(const orr_coll* c, const orr_comm* comm) {
  if (c->op != ORR_COLL_SEND && c->op != ORR_COLL_RECV)
    return host->error(ORR_UNIMPLEMENTED, "sockets: sends and receives only");
  if (c->root_or_peer < 0 || c->root_or_peer >= comm->size)
    return host->error(ORR_INVALID, "sockets: there is no such rank");
  if (orr_dtype_bytes(c->dtype) == 0)
    return host->error(ORR_INVALID, "sockets: there is no such dtype");
  if (c->count > 0 && (!buffer_of(c)->memory || buffer_of(c)->bytes < body_bytes(c)))
    return host->error(ORR_INVALID, "sockets: the buffer has no room for its elements");
  return NULL;
}

orr_status* post(orr_comm* comm, const orr_coll* ops, int32_t n, orr_work** out) {
  transfer* all = calloc((size_t)n + 1, sizeof *all);
  orr_status* status = all ? async_error(comm) : host->error(ORR_FAILED, "sockets: no memory");
  int32_t far = 0;
  for (int32_t i = 0; i < n && !status; ++i) status = check_descriptor(&ops[i], comm);
  if (!status) status = to_self(comm, ops, n);
  for (int32_t i = 0; i < n; ++i)
    if (ops[i].root_or_peer != comm->rank) all[far++] = start(&ops[i]);
  if (!status) status = move_all(comm, all, far);
  for (int32_t i = 0; i < n && !status; ++i) {
    if (ops[i].op == ORR_COLL_RECV && ops[i].source) *ops[i].source = ops[i].root_or_peer;
    if (ops[i].op == ORR_COLL_SEND && ops[i].root_or_peer != comm->rank)
      atomic_fetch_add(&comm->bytes_sent, body_bytes(&ops[i]));
  }
  free(all);
  *out = (orr_work*)comm; /* all is done at return: the handle says nothing */
  return status;
}
