/* SPDX-License-Identifier: Apache-2.0
 *
 * Drivers, a part of strategy/1. If ranks do not take steps together, a strategy brings a driver,
 * which decides when, and in which order, each rank runs its programs.
 *
 * `transform` passes a driver to the host (strategy.h, orr_edit.drive). When the step is complete
 * with its update, the host calls `write`. There the driver edits the step so that a rank computes
 * it by itself on its own samples, and writes more programs (orr_edit.program) from parts of the
 * step (orr_edit.copy_part), over states of its own. `write` is called for every shape of a batch;
 * the driver of the first call is the one that runs. The host calls `open` once, `step` when the
 * script takes a step, and `settle` before parameters and states are read or written by others.
 *
 * A session lasts from the first step to `settle`. During a session the driver runs programs and
 * moves bytes between ranks as it likes, also from threads of its own; ranks need not have taken
 * equally many steps. When `settle` returns, parameters and the step's states are equal on all
 * ranks, and none of the driver's threads uses a state or a group. A state that only programs of
 * one rank read lies on that rank only. The host saves and loads all states but those that are
 * `passing` (orr_state_desc).
 *
 * Under a driver, ranks run whole microbatches in one call, and their programs exchange nothing: no
 * other strategy of the stack may cut the step or sum gradients over ranks.
 */
#ifndef ORRERY_DRIVER_H
#define ORRERY_DRIVER_H

#include <orrery/comm.h>
#include <orrery/strategy.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The host's functions for an open driver. The table lives until `release`; so do its texts and
 * lists. The driver must return their errors; those that another thread gets, from `step` or
 * `settle`. */
typedef struct orr_driver_host {
  uint32_t size;
  int32_t rank, ranks; /* of the job */
  int32_t local_ranks; /* how many of them are on this rank's host */
  void* self;          /* to be passed to every call */

  /* -- facts ---- */
  const char* where;         /* Lua file:line of the strategy */
  const char* comm;          /* the backend's name; NULL on one rank */
  const orr_comm_caps* caps; /* what the backend can do; NULL on one rank */
  const char* device;        /* the device in whose memory the states lie; "host" for ordinary */
  int64_t deadline_ns;       /* of every wait */
  uint64_t program;          /* a digest of the step and the driver's programs */
  int64_t leaves;            /* microbatches of a step */
  const int64_t* leaf_first; /* [ranks + 1]: rank r has the leaves [leaf_first[r],
                                leaf_first[r+1]) */
  int32_t n_scalars;         /* how many numbers each step gets: learning rates and the like */
  int32_t n_outputs;         /* how many numbers each step returns: the loss and the like */

  /* -- in `open` ---- */
  /* Compiles the step for the leaves [first, last) of this rank, for every shape of a batch. *out
   * is the number of this piece for `compute`: pieces are numbered from 0 in the order of the
   * calls. [main thread] */
  orr_status* (*piece)(void* self, int64_t first, int64_t last, int32_t* out);
  /* Makes a group of the ranks that give equal colors, in the order of their keys; color -1: the
   * rank is in none. Collective over all ranks. [main thread] */
  orr_status* (*split)(void* self, int32_t color, int32_t key, int32_t* group);
  /* The memory of a state by its full name, or for a state that belongs to no other by the name
   * that `state` of strategy.h was given. It stays the same as long as the driver lives, and has 0
   * bytes if another rank has the state. A `passing` state is known if a program of this rank, or
   * the step, uses it. [main thread] */
  orr_status* (*state)(void* self, const char* name, orr_buffer* out);

  /* -- in a session ---- */
  /* How many samples of the current batch are in a piece: leaves may be padded. Valid in `step`; -1
   * outside of it, and if there is no such piece. [main thread] */
  int64_t (*samples)(void* self, int32_t piece);
  /* Runs the step on a piece of the current batch; `outputs` gets n_outputs numbers, means over the
   * samples of the piece. Valid in `step`. [main thread] */
  orr_status* (*compute)(void* self, int32_t piece, double* outputs);
  /* Runs a program of this rank with the numbers of step `step`, while the main thread does other
   * work. [any one thread at a time for each program] */
  orr_status* (*run)(void* self, const char* program, const double* scalars, int64_t step);
  /* Carries out operations of comm.h and returns when they are done. Fill them in as for comm/1;
   * their buffers lie in host memory. [any one thread at a time for each group] */
  orr_status* (*post)(void* self, int32_t group, const orr_coll* ops, int32_t n);
  /* Each thread that the driver starts must call this first, so that it does not share the main
   * thread's CPU. [such a thread] */
  void (*begin_thread)(void* self);
  /* Sends observers a number of a step. [main thread] */
  void (*metric)(void* self, int64_t step, const char* tag, double value);
} orr_driver_host;

/* What a step gets. Borrowed for the call. */
typedef struct orr_driver_step {
  uint32_t size;
  int64_t step;          /* from 1, over all sessions */
  const double* scalars; /* n_scalars numbers, always in the same order */
} orr_driver_step;

/* A strategy's driver. All slots must be set but `release`, which may be NULL. */
typedef struct orr_driver {
  uint32_t size;
  void* arg;          /* passed to every call */
  const char* remedy; /* for messages: what a user may do instead, "give mode = \"sync\"" */
  /* Called when the host does not need the driver any more, whether it was open or not. [main
   * thread] */
  void (*release)(void* arg);
  /* Edits the complete step, whose leaves `leaf_first` deals to the ranks as above, and writes the
   * programs that run beside it. It must write the same on all ranks. [main thread] */
  orr_status* (*write)(void* arg, orr_program*, const orr_edit*, const int64_t* leaf_first,
                       int32_t ranks);
  /* Prepares the driver; states have their memory already. Collective. [main thread] */
  orr_status* (*open)(void* arg, const orr_driver_host*);
  /* Takes one step of this rank. `outputs` gets n_outputs numbers, NaN if the rank has no samples.
   * The first step begins a session. [main thread] */
  orr_status* (*step)(void* arg, const orr_driver_step*, double* outputs);
  /* Ends the session. Collective. [main thread] */
  orr_status* (*settle)(void* arg);
  /* Ends the session for good because of an error that has been reported: no thread of the driver
   * may wait any longer, and other ranks stop because their `post` fails. [main thread] */
  void (*stop)(void* arg, const char* why);
  /* The bytes that this rank should have sent in the sessions that `settle` has ended. The core
   * compares them with those that it counted. [main thread] */
  uint64_t (*predicted)(void* arg);
} orr_driver;

#ifdef __cplusplus
}
#endif
#endif
