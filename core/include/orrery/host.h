/* SPDX-License-Identifier: Apache-2.0
 *
 * host/1: the services of the core for plugins. A plugin gets the table with boot->host("host", 1).
 * It lives as long as the process; a slot may be called on the threads that its comment names. The
 * table only grows: check `size` before using a slot newer than version 1.0. All slots of 1.0
 * exist.
 */
#ifndef ORRERY_HOST_H
#define ORRERY_HOST_H

#include <orrery/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Levels of log lines; a number outside counts as the nearest level. DEBUG is shown on demand. */
enum { ORR_LOG_DEBUG = 0, ORR_LOG_INFO = 1, ORR_LOG_WARN = 2, ORR_LOG_ERROR = 3 };

/* The table. It needs no `self`: there is one host in a process. */
typedef struct orr_host {
  uint32_t size; /* of the table of this host, which may have more slots than this header */

  /* A new status with `code` (not ORR_OK) and a copy of `message`: one sentence for the user with
   * what went wrong, the value and what to do. Ownership passes to the caller, who returns it.
   * Never NULL, even without memory. [any thread] */
  orr_status* (*error)(int32_t code, const char* message);
  /* The code of a status; ORR_OK for NULL. Compare codes, never texts. [any thread] */
  int32_t (*error_code)(const orr_status*);
  /* The text of a status, valid until it is released; "" for NULL. [any thread] */
  const char* (*error_message)(const orr_status*);
  /* Frees a status that is not returned to anybody. NULL is allowed. [any thread] */
  void (*error_release)(orr_status*);

  /* Logs one line, without line end or control characters; the text is copied. The host adds time
   * and rank. Errors are returned instead. [any thread] */
  void (*log)(int32_t level, const char* message);

  /* Runs fn(arg, i) for i in [0, n) on the host's only thread pool: on up to threads() threads, the
   * caller included. Returns when all calls are done. Each thread gets a contiguous range of i.
   * Results must not depend on which thread makes a call. fn must not call parallel_for, block, or
   * throw. `arg` is borrowed for the call. n <= 0 does nothing. [compute thread of a device] */
  void (*parallel_for)(int64_t n, void (*fn)(void* arg, int64_t i), void* arg);
  /* The number of threads of the pool, the caller included; at least 1. It may change between
   * steps. [any thread] */
  int32_t (*threads)(void);
} orr_host;

#ifdef __cplusplus
}
#endif
#endif
