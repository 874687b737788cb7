/* SPDX-License-Identifier: Apache-2.0
 *
 * host/1: what the core does for a plugin. Fetched with boot->host("host", 1); lives as long as the
 * process, may be kept and used from any thread that a slot permits. The table only grows: check
 * `size` before using a slot newer than version 1.0. Every slot of 1.0 is there.
 */
#ifndef ORRERY_HOST_H
#define ORRERY_HOST_H

#include <orrery/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How much a log line matters; what lies outside counts as the nearest. DEBUG is shown on
 * demand. */
enum { ORR_LOG_DEBUG = 0, ORR_LOG_INFO = 1, ORR_LOG_WARN = 2, ORR_LOG_ERROR = 3 };

/* The table. It needs no `self`: there is one host in a process. */
typedef struct orr_host {
  uint32_t size; /* as this host knows it; slots of later headers may lie behind */

  /* A new status with `code` (not ORR_OK) and a copy of `message`: one sentence for the user with
   * what went wrong, the value and what to do. Ownership passes to the caller, who returns it.
   * Never NULL, even without memory. [any thread] */
  orr_status* (*error)(int32_t code, const char* message);
  /* The code of a status, ORR_OK of NULL: what it is, where the text says what to do about it.
   * Compare codes, never texts. [any thread] */
  int32_t (*error_code)(const orr_status*);
  /* Its text, borrowed from the status until it is released; "" of NULL. [any thread] */
  const char* (*error_message)(const orr_status*);
  /* Ends a status that nobody will see. NULL is allowed. [any thread] */
  void (*error_release)(orr_status*);

  /* One log line, copied; no line end, no control characters. The host adds time and rank. Not for
   * errors, which are returned. [any thread] */
  void (*log)(int32_t level, const char* message);

  /* The host's one thread pool. Runs fn(arg, i) for i in [0, n) on up to threads() threads, the
   * caller included, and returns when all are done; tasks are dealt in contiguous ranges. Results
   * must not depend on which thread runs a task. Not reentrant: fn must not call it, block, or
   * throw. `arg` is borrowed for the call. n <= 0 does nothing. [compute thread of a device] */
  void (*parallel_for)(int64_t n, void (*fn)(void* arg, int64_t i), void* arg);
  /* Size of the pool, the caller included; at least 1. It may change between steps. [any thread] */
  int32_t (*threads)(void);
} orr_host;

#ifdef __cplusplus
}
#endif
#endif
