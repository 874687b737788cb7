/* SPDX-License-Identifier: Apache-2.0
 *
 * sockets: the ranks of one machine, joined by Unix sockets. Two for each pair of ranks of a
 * communicator: one carries messages in order, the other why it ends: a reason, or a goodbye. Sends
 * and receives are all that there is; Orrery composes reductions and gathers of them. See
 * orrery/comm.h for the calls. */
#define _GNU_SOURCE
#include <orrery/comm.h>
#include <orrery/host.h>
#include <orrery/plugin.h>

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static const orr_host* host;

enum { WORDS = 320, DATA = 0, CONTROL = 1 };
enum { MOST_PLACE = 90 }; /* of a name: an address has 107 characters */

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

typedef struct peer {
  int fd[2]; /* DATA, CONTROL; -1 of oneself */
  int world; /* its rank in the job */
  int left;  /* it has said goodbye */
} peer;

struct orr_comm {
  orr_comm_boot boot;
  char place[160]; /* name of this communicator in the job */
  int rank, size, splits;
  peer* peers;
  _Atomic uint64_t bytes_sent;
  pthread_mutex_t mutex; /* of the failure, and of writing to CONTROL */
  int32_t code;
  char failure[WORDS];
};

/* ---- failures ---- */

static int64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* The first failure stays; every later call ends with it. */
static orr_status* poison(orr_comm* comm, int32_t code, const char* words) {
  orr_status* status;
  pthread_mutex_lock(&comm->mutex);
  if (comm->code == ORR_OK) {
    comm->code = code;
    snprintf(comm->failure, sizeof comm->failure, "%s", words);
  }
  status = host->error(comm->code, comm->failure);
  pthread_mutex_unlock(&comm->mutex);
  return status;
}

/* Words for all on CONTROL: why it ends here; "" is a goodbye. */
static void tell(orr_comm* comm, const char* words) {
  pthread_mutex_lock(&comm->mutex);
  for (int r = 0; r < comm->size; ++r)
    if (r != comm->rank)
      send(comm->peers[r].fd[CONTROL], words, strlen(words) + 1, MSG_NOSIGNAL | MSG_DONTWAIT);
  pthread_mutex_unlock(&comm->mutex);
}

static orr_status* end_all(orr_comm* comm, int32_t code, const char* words) {
  tell(comm, words);
  return poison(comm, code, words);
}

static orr_status* complain(orr_comm* comm, int32_t code, int from, const char* what,
                            const orr_coll* c) {
  char words[WORDS];
  snprintf(words, sizeof words, "rank %d %s in %s '%s' (%s)", from, what,
           c->op == ORR_COLL_SEND ? "send" : "recv", c->name ? c->name : "",
           c->where ? c->where : "");
  return end_all(comm, code, words);
}

/* What rank r has said on CONTROL, if anything. A reason is passed on before this rank ends by it:
 * who sees it gone has then heard why. */
static orr_status* heard_from(orr_comm* comm, int r) {
  char words[WORDS] = "";
  const ssize_t n = recv(comm->peers[r].fd[CONTROL], words, sizeof words - 1, MSG_DONTWAIT);
  if (n <= 0) return NULL;
  if (*words) return end_all(comm, ORR_RETRY, words);
  comm->peers[r].left = 1;
  return NULL;
}

static orr_status* async_error(orr_comm* comm) {
  orr_status* status = NULL;
  pthread_mutex_lock(&comm->mutex);
  if (comm->code != ORR_OK) status = host->error(comm->code, comm->failure);
  pthread_mutex_unlock(&comm->mutex);
  for (int r = 0; r < comm->size && !status; ++r)
    if (r != comm->rank) status = heard_from(comm, r);
  return status;
}

static void abort_all(orr_comm* comm, const char* reason) {
  char words[WORDS];
  snprintf(words, sizeof words, "rank %d aborted: %s", comm->rank, reason);
  host->error_release(end_all(comm, ORR_RETRY, words));
}

/* ---- messages ---- */

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

static orr_status* post(orr_comm* comm, const orr_coll* ops, int32_t n, orr_work** out) {
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

static orr_status* wait(orr_comm* comm, orr_work* work) {
  (void)comm, (void)work;
  return NULL;
}

/* ---- communicators ---- */

static void destroy(orr_comm* comm) {
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

static orr_status* world(void* self, const orr_comm_boot* boot, orr_comm** out) {
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

static orr_status* split(orr_comm* parent, int32_t color, int32_t key, orr_comm** out) {
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

/* ---- the table ---- */

static int32_t probe(void* self, orr_comm_caps* out, char* reason, uint32_t reason_bytes) {
  (void)self;
  out->flags = ORR_COMM_DETERMINISTIC | ORR_COMM_PEER_DEATH | ORR_COMM_PAIR_ORDER;
  out->ops = (uint64_t)1 << ORR_COLL_SEND | (uint64_t)1 << ORR_COLL_RECV;
  out->dtypes = 0; /* nothing is added here */
  out->tiers = 1u << ORR_TIER_HOST;
  out->max_ranks = 0;
  if (reason_bytes > 0) reason[0] = 0;
  return 1;
}

static int32_t rank(orr_comm* comm) { return comm->rank; }
static int32_t world_size(orr_comm* comm) { return comm->size; }
static uint64_t bytes_sent(orr_comm* comm) { return atomic_load(&comm->bytes_sent); }

static const orr_comm_api table = {.size = sizeof(orr_comm_api),
                                   .probe = probe,
                                   .world = world,
                                   .split = split,
                                   .rank = rank,
                                   .world_size = world_size,
                                   .post = post,
                                   .wait = wait,
                                   .abort = abort_all,
                                   .async_error = async_error,
                                   .destroy = destroy,
                                   .bytes_sent = bytes_sent};

static const void* get(void* self, const char* id, uint32_t version) {
  (void)self;
  return strcmp(id, "comm") == 0 && version == 1 ? &table : NULL;
}

static orr_status* entry(const orr_bootstrap* boot, orr_exports* out) {
  host = boot->host("host", 1);
  out->get = get;
  return NULL;
}

ORR_PLUGIN(ORR_KIND_COMM, "sockets", "1.0.0", "Unix sockets between the ranks of one machine",
           entry, 1, {{"comm", 1, 1}})
