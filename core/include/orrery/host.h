/* SPDX-License-Identifier: Apache-2.0
 *
 * host/1: what the core does for a plugin. Fetched with boot->host("host", 1); lives as long as the
 * process. The table only grows: check `size` before using a slot newer than version 1.0.
 */
#ifndef ORRERY_HOST_H
#define ORRERY_HOST_H

#include <orrery/types.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { ORR_LOG_DEBUG = 0, ORR_LOG_INFO = 1, ORR_LOG_WARN = 2, ORR_LOG_ERROR = 3 };

typedef struct orr_host {
  uint32_t size;

  /* A new status with `code` (not ORR_OK) and a copy of `message`. Ownership passes to the caller,
   * who returns it. Never NULL. [any thread] */
  orr_status* (*error)(int32_t code, const char* message);
  int32_t (*error_code)(const orr_status*);       /* [any thread] */
  const char* (*error_message)(const orr_status*); /* borrowed from the status [any thread] */
  void (*error_release)(orr_status*);              /* NULL is allowed [any thread] */

  /* One log line. The host adds time, rank and plugin. [any thread] */
  void (*log)(int32_t level, const char* message);

  /* The host's one thread pool. Runs fn(arg, i) for i in [0, n) on up to threads() threads, the
   * caller included, and returns when all are done; tasks are dealt in contiguous ranges. Results
   * must not depend on which thread runs a task. Not reentrant: fn must not call it.
   * [compute thread of a device] */
  void (*parallel_for)(int64_t n, void (*fn)(void* arg, int64_t i), void* arg);
  int32_t (*threads)(void); /* size of the pool, the caller included [any thread] */
} orr_host;

#ifdef __cplusplus
}
#endif
#endif
