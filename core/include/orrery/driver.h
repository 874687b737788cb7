/* SPDX-License-Identifier: Apache-2.0
 *
 * Drivers, a part of strategy/1: how a strategy takes over when, and in which order, the ranks run
 * what they compute, where no step is common to all of them.
 *
 * `transform` hands a driver over (strategy.h, orr_edit.drive). When the step is complete, its
 * update included, the host calls `write`. There the driver edits the step into what a rank
 * computes by itself on samples of its own, and writes more programs (orr_edit.program), of parts
 * of the step (orr_edit.copy_part) over states of its own. So it does for every shape of a batch;
 * the driver of the first is the one that runs. The host calls `open` once, `step` when the script
 * takes a step, and `settle` before anybody else reads or writes parameters and states.
 *
 * A session lasts from the first step to `settle`. In it the driver runs programs and moves bytes
 * between ranks as it likes, from threads of its own as well, and no two ranks need have taken as
 * many steps. When `settle` returns, parameters and the step's states are equal on all ranks, and
 * none of its threads touches a state or a group. A state that only programs of one rank read lies
 * on that rank alone; the host saves and loads all but those that are `passing`
 * (orr_state_desc).
 *
 * Ranks in a driver's care run whole microbatches in one call and exchange nothing in their
 * programs: beside one no strategy of the stack may cut the step or sum gradients over ranks.
 */
#ifndef ORRERY_DRIVER_H
#define ORRERY_DRIVER_H

#include <orrery/comm.h>
#include <orrery/strategy.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What the host does for an open driver. It lives until `release`; so do its texts and lists.
 * Errors are for the driver to return, from `step` or `settle` where another thread has met
 * them. */
typedef struct orr_driver_host {
  uint32_t size;
  int32_t rank, ranks; /* of the job */
  int32_t local_ranks; /* of them, on this rank's host */
  void* self;          /* given back with every call */

  /* -- facts ---- */
  const char* where;         /* Lua file:line of the strategy */
  const char* comm;          /* the backend's name, and what it can; NULL on one rank */
  const orr_comm_caps* caps; /* likewise */
  const char* device;        /* "host", or whose memory the states lie in */
  int64_t deadline_ns;       /* of every wait */
  uint64_t program; /* a number of the step and the driver's programs: equal if they are equal */
  int64_t leaves;   /* microbatches of a step */
  const int64_t* leaf_first; /* [ranks + 1]: rank r has the leaves [leaf_first[r],
                                leaf_first[r+1]) */
  int32_t n_scalars;         /* numbers that each step is given: learning rates and the like */
  int32_t n_outputs;         /* numbers that each step returns: the loss and the like */

  /* -- in `open` ---- */
  /* Compiles the step for the leaves [first, last), which are of this rank, for every shape of a
   * batch; *out is what `compute` calls them, from 0 in the order of the calls. [main thread] */
  orr_status* (*piece)(void* self, int64_t first, int64_t last, int32_t* out);
  /* The ranks that give equal colors, in the order of their keys, as a group of their own; color
   * -1: in none. Collective over all ranks. [main thread] */
  orr_status* (*split)(void* self, int32_t color, int32_t key, int32_t* group);
  /* Memory of a state, by its name, or by that which `state` of strategy.h was given where it lies
   * beside none: the same as long as the driver lives, of 0 bytes where another rank has it. A
   * `passing` one is known where a program of this rank, or the step, has it. [main thread] */
  orr_status* (*state)(void* self, const char* name, orr_buffer* out);

  /* -- in a session ---- */
  /* How many samples of the batch at hand lie in a piece: leaves may be padded. Valid in `step`; -1
   * outside of it, and where there is no such piece. [main thread] */
  int64_t (*samples)(void* self, int32_t piece);
  /* Runs the step on a piece of the batch at hand; `outputs` gets n_outputs numbers: means over
   * those samples. Valid in `step`. [main thread] */
  orr_status* (*compute)(void* self, int32_t piece, double* outputs);
  /* Runs a program of this rank, given the numbers of step `step`, beside whatever the main thread
   * does. [any one thread at a time for each program] */
  orr_status* (*run)(void* self, const char* program, const double* scalars, int64_t step);
  /* Does operations of comm.h and returns when they are done. Fill them as for comm/1; their
   * buffers lie in host memory. [any one thread at a time for each group] */
  orr_status* (*post)(void* self, int32_t group, const orr_coll* ops, int32_t n);
  /* Called first by each thread that the driver starts: it is not to share the main thread's
   * CPU. [such a thread] */
  void (*begin_thread)(void* self);
  /* A number for the observers, as of a step. [main thread] */
  void (*metric)(void* self, int64_t step, const char* tag, double value);
} orr_driver_host;

/* What a step is given. Borrowed for the call. */
typedef struct orr_driver_step {
  uint32_t size;
  int64_t step;          /* from 1, over all sessions */
  const double* scalars; /* n_scalars numbers, in an order that stays */
} orr_driver_step;

/* A strategy's driver. Every slot is there but `release`, which may be NULL. */
typedef struct orr_driver {
  uint32_t size;
  void* arg;          /* given back with every call */
  const char* remedy; /* what a user may do instead, for messages: "give mode = \"sync\"" */
  /* The host is through with the driver, whether it was open or not. [main thread] */
  void (*release)(void* arg);
  /* Edits the complete step, of the leaves that `leaf_first` deals to the ranks as above, and
   * writes the programs that run beside it. Equal on all ranks. [main thread] */
  orr_status* (*write)(void* arg, orr_program*, const orr_edit*, const int64_t* leaf_first,
                       int32_t ranks);
  /* Sets up what it needs; states have their memory. Collective. [main thread] */
  orr_status* (*open)(void* arg, const orr_driver_host*);
  /* One step of this rank. `outputs` gets n_outputs numbers, NaN where it has no samples. The first
   * one begins a session. [main thread] */
  orr_status* (*step)(void* arg, const orr_driver_step*, double* outputs);
  /* Ends the session. Collective. [main thread] */
  orr_status* (*settle)(void* arg);
  /* Ends the session for good, by an error that has been told: nothing waits any longer, here or,
   * as `post` fails there, on other ranks. [main thread] */
  void (*stop)(void* arg, const char* why);
  /* Bytes that this rank should have sent in the sessions so far that `settle` has ended. Compared
   * by the core with what was counted. [main thread] */
  uint64_t (*predicted)(void* arg);
} orr_driver;

#ifdef __cplusplus
}
#endif
#endif
