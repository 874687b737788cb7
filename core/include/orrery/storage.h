/* SPDX-License-Identifier: Apache-2.0
 *
 * storage/1: files of servers, called by their addresses, "SCHEME://...". Checkpoints are kept by
 * it. A plugin has it beside what it is otherwise: it lists "storage" among its interfaces, and has
 * no kind for it.
 *
 * A file is written as a whole, and is there as a whole or not at all: whoever reads it while it is
 * replaced gets the old one or the new one. An error names the address, what is wrong and what to
 * do, and no secret of whoever asks.
 */
#ifndef ORRERY_STORAGE_H
#define ORRERY_STORAGE_H

#include <orrery/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A file as it was found, or written. The host has zeroed it and set `size`; write no field behind
 * that. */
typedef struct orr_stored_file {
  uint32_t size;
  int32_t there;     /* 0: there is no file of that address, or `put` has not written it */
  char version[256]; /* a text that tells this state of the file from all others, or "" */
} orr_stored_file;

/* A function of the host that takes an address; `to` is what the host has passed. */
typedef void orr_give_address(void* to, const char* address);

typedef struct orr_storage_api {
  uint32_t size;
  void* self; /* given back with every call */

  /* Whether this plugin is the one for the address: 1 or 0. [any thread] */
  int32_t (*serves)(void* self, const char* address);
  /* Writes the file of an address into a local one, which there is, from its beginning on. That
   * there is no file is no error. [any thread, also several at once, as all below] */
  orr_status* (*get)(void* self, const char* address, const char* path, orr_stored_file* out);
  /* Makes a local file that of an address. With `version` only if the file there is still in that
   * state, or with "" if there is none; NULL: whatever is there. That it is in another state is no
   * error. [any thread] */
  orr_status* (*put)(void* self, const char* address, const char* path, const char* version,
                     orr_stored_file* out);
  /* Gives the addresses of all files that begin with `prefix`, sorted by their bytes. Returns
   * ORR_UNIMPLEMENTED where the server has no such question. [any thread] */
  orr_status* (*list)(void* self, const char* prefix, orr_give_address* give, void* to);
  /* Removes a file, if there is one. [any thread] */
  orr_status* (*remove)(void* self, const char* address);
} orr_storage_api;

#ifdef __cplusplus
}
#endif
#endif
