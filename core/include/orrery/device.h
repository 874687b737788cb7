/* SPDX-License-Identifier: Apache-2.0
 *
 * device/1: memory, streams and events of one kind of device. The core itself serves the device
 * "host"; a kernel plugin names the device it works on (kernel.h), so that a plugin with one fast
 * kernel rides on another's device.
 *
 * Order of things: work enqueued on one stream runs in order; an event recorded on a stream is done
 * when all work before it is done. The device "host" has no streams: its calls complete at return
 * and it takes NULL for every stream and event.
 */
#ifndef ORRERY_DEVICE_H
#define ORRERY_DEVICE_H

#include <orrery/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct orr_stream orr_stream;
typedef struct orr_event orr_event;

/* Facts that planning may need without a device present. */
typedef struct orr_device_facts {
  uint32_t size;
  char name[16];        /* "host", "cuda" */
  char model[64];       /* "Zen 3, AVX2" */
  uint64_t memory;      /* bytes that a plan may use; 0 = not known */
  double peak_flops;    /* f32, per second; 0 = not known */
  double bandwidth;     /* bytes per second; 0 = not known */
  uint64_t alignment;   /* of every buffer the plan hands out, bytes */
} orr_device_facts;

typedef struct orr_device_api {
  uint32_t size;
  void* self;

  orr_status* (*facts)(void* self, orr_device_facts* out); /* pure; no device needed [any thread] */

  /* An allocation of `bytes` in `tier`, zeroed. Owned by the caller until `free`. [main thread] */
  orr_status* (*allocate)(void* self, int32_t tier, uint64_t bytes, orr_memory** out);
  void (*free)(void* self, orr_memory*); /* REQUIRES: no work on it is pending [main thread] */

  /* Copies between any two memories that this device can reach, in stream order. The buffers are
   * borrowed until an event recorded after the copy is done. [compute or communication thread] */
  orr_status* (*copy)(void* self, orr_stream*, const orr_buffer* to, const orr_buffer* from);

  orr_status* (*stream_create)(void* self, orr_stream** out);
  void (*stream_destroy)(void* self, orr_stream*);
  orr_status* (*event_create)(void* self, orr_event** out);
  void (*event_destroy)(void* self, orr_event*);
  orr_status* (*event_record)(void* self, orr_event*, orr_stream*);
  orr_status* (*stream_wait)(void* self, orr_stream*, orr_event*);
  orr_status* (*event_sync)(void* self, orr_event*, int64_t deadline_ns); /* blocks the caller */
} orr_device_api;

#ifdef __cplusplus
}
#endif
#endif
