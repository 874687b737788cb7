/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of this backend share: a communicator is a mesh of sockets, two to each peer. One
 * carries messages, in order; the other the sentence that a rank gives up with, at any time and from any
 * thread. */
#ifndef SOCKETS_H
#define SOCKETS_H

#include <orrery/comm.h>
#include <orrery/host.h>

#include <pthread.h>

extern const orr_host* host;

enum { NAME = 96, WORDS = 512 };

typedef struct peer {
  int data, news; /* sockets; -1 of this rank itself */
  int world;      /* its rank in the job */
} peer;

struct orr_comm {
  orr_comm_boot boot;
  char place[NAME]; /* names the mesh among all of this machine */
  int rank, size, splits;
  peer* peers;
  uint64_t bytes_sent;
  pthread_mutex_t mutex; /* of the failure, which any thread may cause or ask for */
  int32_t code;
  char failure[WORDS];
};

/* mesh.c. A listener for `rank` of the mesh `place`, -1 with errno. Whoever knows the name can connect as
 * soon as it is there. */
int mesh_listen(const char* place, int rank);
/* Connects all members of the communicator, which listen as `names`, by rank; closes this one's listener.
 * REQUIRES: all of them listen. */
orr_status* mesh_connect(orr_comm* comm, int listener, const int* names);
orr_comm* mesh_make(const orr_comm_boot* boot, const char* place, int rank, int size);
void mesh_destroy(orr_comm* comm);

/* messages.c. The first failure counts; peers are told. Returns it. */
orr_status* poison(orr_comm* comm, int32_t code, const char* words);
/* NULL while nobody has given up. */
orr_status* async_error(orr_comm* comm);
orr_status* exchange(orr_comm* comm, const orr_coll* ops, int32_t n);

#endif
