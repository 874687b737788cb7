/* SPDX-License-Identifier: Apache-2.0
 *
 * The table. Only sends and receives are here: every other operation the core composes of them. */
#define _GNU_SOURCE
#include "sockets.h"

#include <orrery/plugin.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const orr_host* host;

static orr_status* refuse(int32_t code, const orr_coll* c, const char* why) {
  char words[WORDS];
  snprintf(words, sizeof words, "operation %d '%.200s' (%.200s): %s", c->op, c->name ? c->name : "", c->where ? c->where : "", why);
  return host->error(code, words);
}

static orr_status* check(const orr_comm* comm, const orr_coll* c) {
  if (c->op != ORR_COLL_SEND && c->op != ORR_COLL_RECV) return refuse(ORR_UNIMPLEMENTED, c, "only messages are carried here");
  if (c->root_or_peer < 0 || c->root_or_peer >= comm->size) return refuse(ORR_INVALID, c, "there is no such rank");
  if (c->root_or_peer == comm->rank) return refuse(ORR_INVALID, c, "a message to oneself");
  const orr_buffer* b = c->op == ORR_COLL_SEND ? &c->send : &c->recv;
  const int64_t bytes = c->count * orr_dtype_bytes(c->dtype);
  if (bytes > 0 && (!b->memory || !b->memory->host || b->bytes < (uint64_t)bytes)) return refuse(ORR_INVALID, c, "its buffer is too small");
  return NULL;
}

static orr_status* post(orr_comm* comm, const orr_coll* ops, int32_t n, orr_work** out) {
  orr_status* status = async_error(comm);
  for (int32_t i = 0; i < n && !status; ++i) status = check(comm, &ops[i]);
  *out = (orr_work*)comm; /* all is done at return: the handle says nothing */
  return status || n == 0 ? status : exchange(comm, ops, n);
}

static orr_status* wait(orr_comm* comm, orr_work* work) {
  (void)comm, (void)work;
  return NULL;
}

/* Everybody's `mine`, by rank, in `all`. */
static orr_status* gather(orr_comm* comm, int32_t mine[2], int32_t (*all)[2]) {
  const int n = comm->size;
  orr_memory from = {.size = sizeof from, .bytes = 2 * sizeof(int32_t), .host = mine};
  orr_memory to = {.size = sizeof to, .bytes = (uint64_t)n * 2 * sizeof(int32_t), .host = all};
  orr_coll* ops = calloc((size_t)(2 * n), sizeof *ops);
  orr_status* status = ops ? NULL : host->error(ORR_FAILED, "no memory");
  int32_t m = 0;
  for (int r = 0; r < n && ops; ++r) {
    const uint64_t bytes = 2 * sizeof(int32_t);
    if (r == comm->rank) continue;
    ops[m++] = (orr_coll){.size = sizeof *ops, .op = ORR_COLL_SEND, .dtype = ORR_I32, .root_or_peer = r, .count = 2,
                          .send = {&from, 0, bytes}, .name = "split"};
    ops[m++] = (orr_coll){.size = sizeof *ops, .op = ORR_COLL_RECV, .dtype = ORR_I32, .root_or_peer = r, .count = 2,
                          .recv = {&to, (uint64_t)r * bytes, bytes}, .name = "split"};
  }
  memcpy(all[comm->rank], mine, 2 * sizeof(int32_t));
  if (!status && m > 0) status = exchange(comm, ops, m);
  free(ops);
  return status;
}

/* The ranks of `parent` with the color, ordered by key, then rank; returns how many. */
static int members_of(const orr_comm* parent, int32_t (*all)[2], int32_t color, int* out) {
  int n = 0;
  for (int r = 0; r < parent->size; ++r) {
    int at = n;
    if (all[r][0] != color) continue;
    for (; at > 0 && all[out[at - 1]][1] > all[r][1]; --at) out[at] = out[at - 1];
    out[at] = r;
    ++n;
  }
  return n;
}

static orr_status* meet(orr_comm* comm, int listener, const int* worlds, orr_comm** out) {
  orr_status* status = comm ? mesh_connect(comm, listener, worlds) : host->error(ORR_FAILED, "no memory");
  if (status) mesh_destroy(comm);
  else *out = comm;
  return status;
}

/* Everybody listens, under its rank in the parent, before it tells its color: then all can be called. */
static orr_status* split(orr_comm* parent, int32_t color, int32_t key, orr_comm** out) {
  char place[NAME];
  int32_t mine[2] = {color, key}, (*all)[2] = calloc((size_t)parent->size, sizeof *all);
  int *members = calloc((size_t)parent->size, sizeof *members), n = 0, rank = 0;
  orr_status* status = all && members ? NULL : host->error(ORR_FAILED, "no memory");
  *out = NULL;
  snprintf(place, sizeof place, "%.80s.%d", parent->place, parent->splits++);
  const int listener = mesh_listen(place, parent->rank);
  if (!status && listener < 0) status = host->error(ORR_FAILED, "cannot listen for the other ranks; is a limit of open files reached?");
  if (!status) status = gather(parent, mine, all);
  if (!status && color >= 0) {
    n = members_of(parent, all, color, members);
    while (members[rank] != parent->rank) ++rank;
    orr_comm* child = mesh_make(&parent->boot, place, rank, n);
    status = meet(child, listener, members, out);
  } else if (listener >= 0) {
    close(listener);
  }
  for (int r = 0; *out && r < n; ++r) (*out)->peers[r].world = parent->peers[members[r]].world;
  free(all);
  free(members);
  return status;
}

/* The store tells when a rank listens. */
static orr_status* world(void* self, const orr_comm_boot* boot, orr_comm** out) {
  const int n = boot->world_size, listener = mesh_listen(boot->job, boot->rank);
  char key[32], there;
  uint64_t bytes;
  int* worlds = calloc((size_t)n, sizeof *worlds);
  (void)self;
  orr_status* status = worlds && listener >= 0 ? NULL : host->error(ORR_FAILED, "cannot listen for the other ranks");
  snprintf(key, sizeof key, "sockets/%d", boot->rank);
  if (!status) status = boot->put(boot->store, key, "1", 1);
  for (int r = 0; r < n && !status; ++r) {
    worlds[r] = r;
    snprintf(key, sizeof key, "sockets/%d", r);
    status = boot->get(boot->store, key, &there, 1, &bytes, boot->deadline_ns);
  }
  if (!status) status = meet(mesh_make(boot, boot->job, boot->rank, n), listener, worlds, out);
  else if (listener >= 0) close(listener);
  free(worlds);
  return status;
}

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
static uint64_t bytes_sent(orr_comm* comm) { return comm->bytes_sent; }

static void abort_all(orr_comm* comm, const char* reason) {
  char words[WORDS];
  snprintf(words, sizeof words, "rank %d aborted: %.400s", comm->rank, reason);
  host->error_release(poison(comm, ORR_RETRY, words));
}

static const orr_comm_api table = {.size = sizeof(orr_comm_api), .probe = probe, .world = world, .split = split, .rank = rank,
                                   .world_size = world_size, .post = post, .wait = wait, .abort = abort_all,
                                   .async_error = async_error, .destroy = mesh_destroy, .bytes_sent = bytes_sent};

static const void* get(void* self, const char* id, uint32_t version) {
  (void)self;
  return strcmp(id, "comm") == 0 && version == 1 ? &table : NULL;
}

static orr_status* entry(const orr_bootstrap* boot, orr_exports* out) {
  host = boot->host("host", 1);
  out->get = get;
  return NULL;
}

ORR_PLUGIN(ORR_KIND_COMM, "sockets", "1.0.0", "Unix sockets between the ranks of one machine", entry, 1, {{"comm", 1, 1}})
