/* SPDX-License-Identifier: Apache-2.0
 *
 * What the parts of the backend share. failures.c: why a communicator ends. messages.c: what moves.
 * world.c: how ranks come together. sockets.c: the plugin. */
#ifndef SOCKETS_H
#define SOCKETS_H

#include <orrery/comm.h>
#include <orrery/host.h>

#include <pthread.h>
#include <stdatomic.h>

extern const orr_host* host;

enum { WORDS = 320, DATA = 0, CONTROL = 1 };

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

/* failures.c. */

int64_t now_ns(void);
/* The first failure stays; every later call ends with it. */
orr_status* poison(orr_comm* comm, int32_t code, const char* words);

/* Words for all on CONTROL: why it ends here; "" is a goodbye. */
void tell(orr_comm* comm, const char* words);

orr_status* end_all(orr_comm* comm, int32_t code, const char* words);
orr_status* complain(orr_comm* comm, int32_t code, int from, const char* what, const orr_coll* c);

/* What rank r has said on CONTROL, if anything. A reason is passed on before this rank ends by it:
 * who sees it gone has then heard why. */
orr_status* heard_from(orr_comm* comm, int r);

orr_status* async_error(orr_comm* comm);
void abort_all(orr_comm* comm, const char* reason);

/* messages.c. */

orr_status* post(orr_comm* comm, const orr_coll* ops, int32_t n, orr_work** out);

/* world.c. */

orr_status* world(void* self, const orr_comm_boot* boot, orr_comm** out);
orr_status* split(orr_comm* parent, int32_t color, int32_t key, orr_comm** out);
void destroy(orr_comm* comm);

#endif
