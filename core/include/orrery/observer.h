/* SPDX-License-Identifier: Apache-2.0
 *
 * observer/1: read-only events of a run, delivered in order on one thread. Events have numbers that
 * the program computes anyway: an observer never causes a collective or a wait.
 *
 * A run uses every observer that it finds, on every rank. One process may have several runs, one
 * after another: start, events, stop; start again. A plugin ignores events of a kind that it does
 * not know. An observer runs on the run's main thread: it must not wait, and its memory must not
 * grow with the number of steps.
 */
#ifndef ORRERY_OBSERVER_H
#define ORRERY_OBSERVER_H

#include <orrery/types.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
  ORR_EVENT_RUN_BEGIN =
      1, /* text: the run directory ("" if none); value: planned steps, 0 unknown */
  ORR_EVENT_STEP_END = 2, /* step, seconds = wall time of the step */
  ORR_EVENT_METRIC = 3,   /* step, text = tag ("loss", "grad_norm"), value */
  ORR_EVENT_LOG = 4,      /* text: a line of orrery.log */
  ORR_EVENT_FAILURE = 5,  /* text: the error */
  ORR_EVENT_RUN_END = 6   /* the last one, also after a FAILURE */
};

/* One event, with its texts borrowed for the call: copy what you keep. Unused fields are 0 or
 * "". */
typedef struct orr_event_record {
  uint32_t size;            /* of the struct that the host has made */
  int32_t kind;             /* ORR_EVENT_STEP_END ... */
  int32_t rank, world_size; /* of this process */
  int64_t step;             /* counted from 1 */
  double value;             /* may be NaN or infinite, as the program computed it */
  double seconds;
  double time;      /* when it happened: unix seconds */
  const char* text; /* never NULL */
} orr_event_record;

/* What an observer gets when it starts. Borrowed for the call. */
typedef struct orr_observer_config {
  uint32_t size;
  int32_t rank, world_size; /* ranks count from 0; what is printed once, rank 0 prints */
  const char* directory;    /* of the run, "" if it has none */
  int32_t terminal;         /* 1 if standard error is a terminal */
} orr_observer_config;

/* The plugin's table; lives until its `shutdown`. The host passes `self` to every call. */
typedef struct orr_observer_api {
  uint32_t size;
  void* self;
  /* Begins a run. An error, such as a directory that cannot be written to, ends the run before its
   * first step, with the observer's text. [main thread] */
  orr_status* (*start)(void* self, const orr_observer_config*);
  /* Handles the next event. An error ends the run: return one only if going on would lose results
   * that the user asked for. Never called before `start` or after `stop`. [main thread] */
  orr_status* (*observe)(void* self, const orr_event_record* event);
  /* Ends the run and releases what `start` took. Called however the run went, also after an error
   * of `observe`, but not after one of `start`. [main thread] */
  void (*stop)(void* self);
} orr_observer_api;

#ifdef __cplusplus
}
#endif
#endif
