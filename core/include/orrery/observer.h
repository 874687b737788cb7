/* SPDX-License-Identifier: Apache-2.0
 *
 * observer/1: read-only events of a run, delivered in order on one thread. Events have numbers that
 * the program computes anyway: an observer never causes a collective or a wait.
 *
 * A run uses every observer that it finds, on every rank. One process may have several runs, one
 * after another: start, events, stop; start again. A script that compiles several has them between
 * one start and one stop: `run` says which an event is of. A plugin ignores events of a kind that
 * it does not know. An observer runs on the run's main thread: it must not wait, and its memory
 * must not grow with the number of steps.
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
  ORR_EVENT_METRIC = 3,  /* step, text = tag ("loss"), value; detail: "script" if that records it */
  ORR_EVENT_LOG = 4,     /* text: a line of orrery.log */
  ORR_EVENT_FAILURE = 5, /* text: the error; value: 1 if the run was told to stop, and has saved */
  ORR_EVENT_RUN_END = 6, /* the last one, also after a FAILURE */
  /* What one lane did in a step of which an observer wants spans. text: an op, an exchange, "wait";
   * detail: module path and script line; time: when it began; seconds: how long it took */
  ORR_EVENT_SPAN = 7,
  ORR_EVENT_LEVEL = 8, /* likewise; text: a kind of memory; value: bytes of it from `time` on */
  ORR_EVENT_FACT = 9,  /* of the whole run; text: its name; detail, or if that is "", value */
  /* step, text = name, elements: values of a tensor as this rank holds it, after the step */
  ORR_EVENT_TENSOR = 10,
  /* `run`, which has a name or is not the script's first, takes its first step or records a
   * value; text: its own directory, below the run's ("" if none); value as of RUN_BEGIN */
  ORR_EVENT_FURTHER_BEGIN = 11,
  ORR_EVENT_FURTHER_END = 12, /* `run` is gone; those that are there at RUN_END have none */
  /* What the script records beside numbers, which are METRICs. step, text = name, and */
  ORR_EVENT_TEXT = 13,     /* detail: the text; it need not be UTF-8 */
  ORR_EVENT_IMAGE = 14,    /* pixels, width, height, channels */
  ORR_EVENT_HISTOGRAM = 15 /* elements: the values whose distribution is to be shown */
};

/* What a rank does at the same time, one span after another on each. */
enum {
  ORR_LANE_COMPUTE = 0, /* launches, and waits for the other lanes */
  ORR_LANE_COMM = 1,  /* exchanges; of a backend with several at once, each has a lane from here */
  ORR_LANE_COPY = -1, /* copies between memory tiers */
  ORR_LANE_DATA = -2  /* rows of the batch */
};

enum { ORR_WANTS_SPANS = 1, ORR_WANTS_TENSORS = 2 };

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
  /* Hosts whose `size` ends above do not send the events that need what follows. */
  const char* detail;  /* may be NULL, which is "" */
  int32_t lane, phase; /* phase: 1 forward, 2 backward, 3 weight gradients, 4 update, 0 before */
  int32_t stage,
      microbatch; /* stage: the rank's chunk of a pipeline; microbatch: -1: all at once */
  double flops;
  uint64_t bytes; /* that this rank sends, or copies */
  /* An exchange binds the ranks that take part by arrows: one begins in the span with this number
   * as arrow_out, and ends in that span of another rank which has it as arrow_in. 0: none. */
  uint64_t arrow_out, arrow_in;
  const float* elements;
  int64_t count; /* of elements */
  /* What the event is of, if the script has compiled several: "" the first run, or the whole job;
   * "run-2" the second; the name that the script gives a run; "func-1" its first orrery.func that
   * records values. NULL is "". */
  const char* run;
  /* Rows from the top, in each the pixels from the left, in each `channels` bytes: grey, or red,
   * green and blue, or these and alpha (1, 3 or 4). */
  const uint8_t* pixels;
  int32_t width, height, channels;
} orr_event_record;

/* What an observer gets when it starts. Borrowed for the call. */
typedef struct orr_observer_config {
  uint32_t size;
  int32_t rank, world_size; /* ranks count from 0; what is printed once, rank 0 prints */
  const char* directory;    /* of the run, "" if it has none */
  int32_t terminal;         /* 1 if standard error is a terminal */
  const char* options;      /* what the user wrote behind --observe NAME=; "" or NULL: nothing */
  /* 1: nobody has named the directory, which is made for every run. An observer then writes only
   * what costs next to nothing, unless it is given options. */
  int32_t by_default;
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
  /* Which costly events of the step that begins it wants: the sum of ORR_WANTS_ bits, 0 for none.
   * May be NULL: none. A step with spans runs the same work, a little slower; on a device it waits
   * for each launch. [main thread] */
  int32_t (*wants)(void* self, int64_t step);
} orr_observer_api;

#ifdef __cplusplus
}
#endif
#endif
