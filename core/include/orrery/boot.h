/* SPDX-License-Identifier: Apache-2.0
 *
 * boot/1: brings the ranks of a job together that were started in a way that Orrery does not know:
 * by another launcher, or to meet in a store of their cluster (etcd, PMIx, a shared directory). The
 * plugin says which rank this process is, and carries a short text from one rank to the others. In
 * that text rank 0 says where it listens, and a secret of this job. All else the host does itself
 * over the connections that ranks then make to rank 0: the store that comm plugins get (comm.h),
 * who has ended and in which order, who does not answer, what each is doing. A plugin need not
 * watch anybody.
 *
 * A plugin has it beside what it is otherwise, or has nothing else. For it there is no kind: the
 * kinds of a plugin that has nothing else are 0. The user names it by ORRERY_BOOT=NAME. If nobody
 * does, a plugin is taken if it alone says that it has started this process, and no launcher that
 * Orrery knows has.
 */
#ifndef ORRERY_BOOT_H
#define ORRERY_BOOT_H

#include <orrery/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What `started` says. The host has zeroed it and set `size`; write no field behind that. */
typedef struct orr_boot_world {
  uint32_t size;
  int32_t started; /* 1: this process is a rank of this plugin's; 0: it is not, see `reason` */
  int32_t rank;    /* from 0, below world_size */
  int32_t world_size;
  int32_t local_rank; /* the same among the ranks of this host, which share its memory */
  int32_t local_size;
  char reason[256]; /* why not, for users: "BOOT_RANK is not set" */
} orr_boot_world;

typedef struct orr_boot_api {
  uint32_t size;
  void* self; /* given back with every call */

  /* Whether this process was started in this plugin's way, and as which rank. Says the same each
   * time, without waiting for other ranks. An error ends the process: something speaks for this
   * way, but is half or wrong. It is asked also in processes of other launchers, and then should
   * not leave anything behind. [main thread, as all below] */
  orr_status* (*started)(void* self, orr_boot_world* out);
  /* Gives a value to all ranks, under a key of this rank. A key is put once; it is of a-z and 0-9,
   * and has at most 32 bytes. A value is a line of text with at most 1,024. Only processes of this
   * user may be able to read it: it holds the secret. REQUIRES: `started` said 1. */
  orr_status* (*put)(void* self, const char* key, const void* value, uint64_t bytes);
  /* Writes the value that `rank` has put into `value`, and its length. Waits for it up to the
   * deadline, then returns ORR_DEADLINE. What an earlier job has left is never given. REQUIRES:
   * `started` said 1. */
  orr_status* (*get)(void* self, int32_t rank, const char* key, void* value, uint64_t capacity,
                     uint64_t* bytes, int64_t deadline_ns);
} orr_boot_api;

#ifdef __cplusplus
}
#endif
#endif
