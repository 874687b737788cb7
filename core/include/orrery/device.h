/* SPDX-License-Identifier: Apache-2.0
 *
 * device/1: memory, streams and events of one kind of device. The core itself serves the device
 * "host"; a kernel plugin names the device it works on (kernel.h), so that a plugin with one fast
 * kernel rides on another's device.
 *
 * Order of things: work enqueued on one stream runs in order; streams run side by side; an event
 * recorded on a stream is done when all work before it is done. The device "host" has no streams:
 * its calls complete at return and it takes NULL for every stream and event.
 *
 * An orr_stream is the device's own handle (CUstream for "cuda", cl_command_queue for "opencl"), so
 * that kernels and comm backends of other plugins enqueue on it without asking.
 *
 * Errors of enqueued work come late: event_sync returns the first one of its stream.
 */
#ifndef ORRERY_DEVICE_H
#define ORRERY_DEVICE_H

#include <orrery/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Handles of the device's making. A recorded piece of work is a graph. */
typedef struct orr_stream orr_stream;
typedef struct orr_event orr_event;
typedef struct orr_graph orr_graph;

/* Facts that planning may need without a device present. The host has zeroed the struct and set
 * `size`: write no field that lies behind. */
typedef struct orr_device_facts {
  uint32_t size;
  char name[16];      /* "host", "cuda" */
  char model[64];     /* "Zen 3, AVX2" */
  uint64_t memory;    /* bytes that a plan may use; 0 = not known */
  double peak_flops;  /* f32, per second; 0 = not known */
  double bandwidth;   /* bytes per second; 0 = not known */
  uint64_t alignment; /* of every buffer the plan hands out, bytes; 0: any */
  uint64_t outside;   /* bytes that driver and libraries take beside what is allocated here */
} orr_device_facts;

typedef struct orr_device_api {
  uint32_t size;
  void* self;

  /* Before `open`: what is known of the kind of device, or of the one that ORRERY would open.
   * After: of the opened one. [any thread] */
  orr_status* (*facts)(void* self, orr_device_facts* out);

  /* Memory of tier DEVICE, or PINNED, which has a host address, zeroed. Owned by the caller until
   * `free`. REQUIRES: open. [main thread] */
  orr_status* (*allocate)(void* self, int32_t tier, uint64_t bytes, orr_memory** out);
  /* Gives the memory back. REQUIRES: no work on it is pending. [main thread] */
  void (*free)(void* self, orr_memory*);

  /* Copies between any two of DEVICE, PINNED, COMM and HOST, in stream order; to and from have
   * equal bytes. Both are borrowed until an event recorded after the copy is done; from or to HOST
   * memory it may take until return. [compute or communication thread] */
  orr_status* (*copy)(void* self, orr_stream*, const orr_buffer* to, const orr_buffer* from);

  /* Streams and events: [any thread of the process, one at a time for each stream and event].
   * A new stream, owned by the caller until `stream_destroy`. REQUIRES: open. */
  orr_status* (*stream_create)(void* self, orr_stream** out);
  /* REQUIRES: its work is done. */
  void (*stream_destroy)(void* self, orr_stream*);
  /* A new event, owned by the caller until `event_destroy`; nobody waits for it before it is
   * recorded. */
  orr_status* (*event_create)(void* self, orr_event** out);
  /* REQUIRES: nobody waits for it. */
  void (*event_destroy)(void* self, orr_event*);
  /* Puts the event behind all that is on the stream, and flushes the stream: its work starts
   * without anybody waiting. Recorded again, it stands for the new place. Never waits. */
  orr_status* (*event_record)(void* self, orr_event*, orr_stream*);
  /* Work of the stream: what comes later waits for the event, as it is recorded now. Never waits
   * itself. */
  orr_status* (*stream_wait)(void* self, orr_stream*, orr_event*);
  /* Blocks the caller until the event is done, at most deadline_ns (then ORR_DEADLINE, and the work
   * goes on). Returns, once, the first error of work that was enqueued before it; later work is not
   * touched by that. */
  orr_status* (*event_sync)(void* self, orr_event*, int64_t deadline_ns);

  /* Takes the device for this process: the local_rank-th of local_size processes of this host.
   * Called once, before all but `facts`. Errors say what is missing ("no NVIDIA driver here").
   * [main thread] */
  orr_status* (*open)(void* self, int32_t local_rank, int32_t local_size);

  /* Recording, optional: what is enqueued on the stream between begin and end is not run but kept,
   * with the buffers it names; each launch of the graph runs it all in order. Other threads go on
   * with other streams meanwhile. [compute thread] */
  orr_status* (*capture_begin)(void* self, orr_stream*);
  /* What was recorded, owned by the caller until `graph_destroy`; its buffers and kernels must live
   * as long. [compute thread] */
  orr_status* (*capture_end)(void* self, orr_stream*, orr_graph** out);
  /* Enqueues all of it, any number of times; contents of buffers are those of then. [compute
   * thread] */
  orr_status* (*graph_launch)(void* self, orr_graph*, orr_stream*);
  /* REQUIRES: no launch of it is pending. [main thread] */
  void (*graph_destroy)(void* self, orr_graph*);
} orr_device_api;

#ifdef __cplusplus
}
#endif
#endif
