/* SPDX-License-Identifier: Apache-2.0
 *
 * sockets: the ranks of one machine, joined by Unix sockets. Two for each pair of ranks of a
 * communicator: one carries messages in order, the other why it ends: a reason, or a goodbye. Sends
 * and receives are all that there is; Orrery composes reductions and gathers of them. See
 * orrery/comm.h for the calls. */
#include "sockets.h"

#include <orrery/plugin.h>

#include <string.h>

const orr_host* host;

static orr_status* wait(orr_comm* comm, orr_work* work) {
  (void)comm, (void)work;
  return NULL;
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
