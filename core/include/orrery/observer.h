/* SPDX-License-Identifier: Apache-2.0
 *
 * observer/1: read-only events of a run, delivered in order on one thread. What is observed is what
 * the program already computes: an observer never causes a collective or a wait.
 */
#ifndef ORRERY_OBSERVER_H
#define ORRERY_OBSERVER_H

#include <orrery/types.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
  ORR_EVENT_RUN_BEGIN = 1, /* text: the run directory ("" if none); value: planned steps, 0 unknown */
  ORR_EVENT_STEP_END = 2,  /* step, seconds = wall time of the step */
  ORR_EVENT_METRIC = 3,    /* step, text = tag ("loss", "grad_norm"), value */
  ORR_EVENT_LOG = 4,       /* text: a line of orrery.log */
  ORR_EVENT_FAILURE = 5,   /* text: the error */
  ORR_EVENT_RUN_END = 6
};

/* Borrowed for the call. Unused fields are 0 or "". */
typedef struct orr_event_record {
  uint32_t size;
  int32_t kind;
  int32_t rank, world_size;
  int64_t step;
  double value;
  double seconds;
  double time; /* unix seconds */
  const char* text;
} orr_event_record;

/* What an observer is told when it starts. */
typedef struct orr_observer_config {
  uint32_t size;
  int32_t rank, world_size;
  const char* directory; /* of the run, "" if the run keeps none */
  int32_t terminal;      /* 1 if standard error is a terminal */
} orr_observer_config;

typedef struct orr_observer_api {
  uint32_t size;
  void* self;
  orr_status* (*start)(void* self, const orr_observer_config*);        /* [main thread] */
  orr_status* (*observe)(void* self, const orr_event_record* event);   /* [main thread] */
  void (*stop)(void* self);                                            /* [main thread] */
} orr_observer_api;

#ifdef __cplusplus
}
#endif
#endif
