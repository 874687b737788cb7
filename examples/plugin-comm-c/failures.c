/* SPDX-License-Identifier: Apache-2.0
 *
 * Why a communicator ends. The first reason stays, and reaches all ranks on CONTROL. */
#define _GNU_SOURCE
#include "sockets.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

int64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

orr_status* poison(orr_comm* comm, int32_t code, const char* words) {
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

void tell(orr_comm* comm, const char* words) {
  pthread_mutex_lock(&comm->mutex);
  for (int r = 0; r < comm->size; ++r)
    if (r != comm->rank)
      send(comm->peers[r].fd[CONTROL], words, strlen(words) + 1, MSG_NOSIGNAL | MSG_DONTWAIT);
  pthread_mutex_unlock(&comm->mutex);
}

orr_status* end_all(orr_comm* comm, int32_t code, const char* words) {
  tell(comm, words);
  return poison(comm, code, words);
}

orr_status* complain(orr_comm* comm, int32_t code, int from, const char* what, const orr_coll* c) {
  char words[WORDS];
  snprintf(words, sizeof words, "rank %d %s in %s '%s' (%s)", from, what,
           c->op == ORR_COLL_SEND ? "send" : "recv", c->name ? c->name : "",
           c->where ? c->where : "");
  return end_all(comm, code, words);
}

orr_status* heard_from(orr_comm* comm, int r) {
  char words[WORDS] = "";
  const ssize_t n = recv(comm->peers[r].fd[CONTROL], words, sizeof words - 1, MSG_DONTWAIT);
  if (n <= 0) return NULL;
  if (*words) return end_all(comm, ORR_RETRY, words);
  comm->peers[r].left = 1;
  return NULL;
}

orr_status* async_error(orr_comm* comm) {
  orr_status* status = NULL;
  pthread_mutex_lock(&comm->mutex);
  if (comm->code != ORR_OK) status = host->error(comm->code, comm->failure);
  pthread_mutex_unlock(&comm->mutex);
  for (int r = 0; r < comm->size && !status; ++r)
    if (r != comm->rank) status = heard_from(comm, r);
  return status;
}

void abort_all(orr_comm* comm, const char* reason) {
  char words[WORDS];
  snprintf(words, sizeof words, "rank %d aborted: %s", comm->rank, reason);
  host->error_release(end_all(comm, ORR_RETRY, words));
}
