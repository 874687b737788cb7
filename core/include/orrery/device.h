/* SPDX-License-Identifier: Apache-2.0
 *
 * device/1: memory, streams and events of one kind of device. The core itself has the device
 * "host". A kernel plugin names the device that it works on (kernel.h), so a plugin with only one
 * fast kernel can use the device of another plugin.
 *
 * Order: work on one stream runs in the order in which it was enqueued; different streams run
 * concurrently. An event that is recorded on a stream is done when all work before it is done. The
 * device "host" has no streams: its calls complete at return, and take NULL for every stream and
 * event.
 *
 * An orr_stream is the device's own handle (CUstream for "cuda", cl_command_queue for "opencl"), so
 * that kernels and comm backends of other plugins can enqueue work on it directly.
 *
 * Errors of enqueued work show later: event_sync returns the first one of its stream.
 */
#ifndef ORRERY_DEVICE_H
#define ORRERY_DEVICE_H

#include <orrery/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Handles that the device makes. A graph is recorded work. */
typedef struct orr_stream orr_stream;
typedef struct orr_event orr_event;
typedef struct orr_graph orr_graph;

/* Facts that planning may need even if no device is present. The host has zeroed the struct and set
 * `size`: write no field behind that. */
typedef struct orr_device_facts {
  uint32_t size;
  char name[16];          /* "host", "cuda" */
  char model[64];         /* "Zen 3, AVX2" */
  uint64_t memory;        /* bytes that a plan may use; 0 = not known */
  double peak_flops;      /* f32, per second; 0 = not known */
  double bandwidth;       /* bytes per second; 0 = not known */
  uint64_t alignment;     /* of every buffer of a plan, bytes; 0: any */
  uint64_t outside;       /* bytes that driver and libraries take in addition to allocations here */
  uint64_t row_alignment; /* of the rows of a matrix, bytes, for fast products; 0: any */
} orr_device_facts;

typedef struct orr_device_api {
  uint32_t size;
  void* self;

  /* Before `open`: facts of the kind of device, or of the device that would be opened. Afterwards:
   * of the opened one. [any thread] */
  orr_status* (*facts)(void* self, orr_device_facts* out);

  /* Allocates zeroed memory of tier DEVICE, or PINNED, which has a host address. Owned by the
   * caller until `free`. REQUIRES: open. [main thread] */
  orr_status* (*allocate)(void* self, int32_t tier, uint64_t bytes, orr_memory** out);
  /* Frees the memory. REQUIRES: no work on it is pending. [main thread] */
  void (*free)(void* self, orr_memory*);

  /* Copies between any two of DEVICE, PINNED, COMM and HOST, in stream order; to and from have
   * equal bytes. Both are borrowed until an event recorded after the copy is done. A copy from or
   * to HOST memory may block until it is done. [compute or communication thread] */
  orr_status* (*copy)(void* self, orr_stream*, const orr_buffer* to, const orr_buffer* from);

  /* Streams and events: [any thread of the process, one at a time for each stream and event].
   * A new stream, owned by the caller until `stream_destroy`. REQUIRES: open. */
  orr_status* (*stream_create)(void* self, orr_stream** out);
  /* REQUIRES: its work is done. */
  void (*stream_destroy)(void* self, orr_stream*);
  /* A new event, owned by the caller until `event_destroy`. It is recorded before anything waits
   * for it. */
  orr_status* (*event_create)(void* self, orr_event** out);
  /* REQUIRES: nothing waits for it. */
  void (*event_destroy)(void* self, orr_event*);
  /* Records the event behind all work on the stream, and flushes the stream: its work starts even
   * if nothing waits for it. If the event was recorded before, it now stands for the new place.
   * Never waits. */
  orr_status* (*event_record)(void* self, orr_event*, orr_stream*);
  /* Makes later work of the stream wait for the event as it is recorded now. The call itself never
   * waits. */
  orr_status* (*stream_wait)(void* self, orr_stream*, orr_event*);
  /* Blocks the caller until the event is done, at most deadline_ns (then returns ORR_DEADLINE, and
   * the work goes on). Returns, once, the first error of work that was enqueued before the event;
   * later work can still succeed. */
  orr_status* (*event_sync)(void* self, orr_event*, int64_t deadline_ns);

  /* Opens the device for this process, which is the local_rank-th of local_size processes on this
   * host. Called once, before all functions but `facts`. Errors say what is missing ("no NVIDIA
   * driver here"). [main thread] */
  orr_status* (*open)(void* self, int32_t local_rank, int32_t local_size);

  /* Recording, optional. Work that is enqueued on the stream between begin and end is not run, but
   * recorded with its buffers; each launch of the graph runs all of it in order. Other threads may
   * use other streams meanwhile. [compute thread] */
  orr_status* (*capture_begin)(void* self, orr_stream*);
  /* Ends the recording and returns it, owned by the caller until `graph_destroy`; its buffers and
   * kernels must live as long. [compute thread] */
  orr_status* (*capture_end)(void* self, orr_stream*, orr_graph** out);
  /* Enqueues all recorded work, any number of times, on the contents that the buffers then have.
   * [compute thread] */
  orr_status* (*graph_launch)(void* self, orr_graph*, orr_stream*);
  /* REQUIRES: no launch of it is pending. [main thread] */
  void (*graph_destroy)(void* self, orr_graph*);

  /* A new stream for messages, optional: its work goes before that of other streams where both
   * could begin, because other ranks wait for it. Otherwise it is like those of stream_create,
   * which stands in for it where it is missing. REQUIRES: open. */
  orr_status* (*stream_create_urgent)(void* self, orr_stream** out);
} orr_device_api;

#ifdef __cplusplus
}
#endif
#endif
