/* SPDX-License-Identifier: Apache-2.0
 *
 * facts/1: what a plugin has found out about this machine, for people: `orrery doctor` prints it. A
 * plugin of any kind may have this interface beside that of its kind, and lists both in its
 * descriptor. It is asked only if it can be used here: after its entry, and after the probe of its
 * kind said yes. Nothing else asks for it: what a plugin finds out for itself, it finds out without
 * this call.
 */
#ifndef ORRERY_FACTS_H
#define ORRERY_FACTS_H

#include <orrery/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The table of the interface. Names are short, such as "memory"; the plugin's own name is printed
 * before them. Texts are a line each, in words and units that a user knows. Only people read them:
 * they may change with any version. */
typedef struct orr_facts_api {
  uint32_t size; /* of this table */
  void* self;    /* passed to the call */
  /* Calls say(arg, name, text) for each fact, in the order of printing. Both texts are borrowed for
   * the call. It may measure for up to a second, on all of the host's threads. An error is
   * printed, and ends the command: a fact that cannot be had is left out instead. [main thread] */
  orr_status* (*tell)(void* self, void (*say)(void* arg, const char* name, const char* text),
                      void* arg);
} orr_facts_api;

#ifdef __cplusplus
}
#endif

#endif
