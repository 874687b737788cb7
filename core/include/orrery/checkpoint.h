/* SPDX-License-Identifier: Apache-2.0
 *
 * checkpoint/1: the state of a run in the format of another program. A plugin has it beside what it
 * is otherwise: it lists "checkpoint" among its interfaces, and has no kind for it. Scripts name
 * the format where they save; where they load, the plugin that serves the directory is taken.
 *
 * A checkpoint is a directory with a manifest, a file whose name the format fixes. The host makes a
 * folder in it for the files of one save, has each writer (a rank) write its boxes there, and puts
 * the manifest in place by renaming it when all files are on the disk: a crash leaves the
 * checkpoint before or the new one. It removes the files of the one before, and those of a writer
 * that died. Errors name the file, what is wrong and what to do.
 */
#ifndef ORRERY_CHECKPOINT_H
#define ORRERY_CHECKPOINT_H

#include <orrery/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a checkpoint says beside its tensors. Where it is read, the host has zeroed it and set
 * `size`; write no field behind that. */
typedef struct orr_run_facts {
  uint32_t size;
  int32_t fast_sums;    /* 1: sums over the batch need not have the bits of one process */
  int64_t step;         /* steps done */
  int64_t microbatches; /* of a step; 0: not known */
  uint64_t seed;
  const char* extra; /* the script's own text; NULL where it is read: "" */
} orr_run_facts;

/* A part of a tensor that is a range along each dim. */
typedef struct orr_box {
  uint32_t size;
  const char* name; /* UTF-8, without control characters */
  orr_tensor whole; /* contiguous row-major; `rank` counts for the box, too */
  int64_t offset[ORR_MAX_RANK];
  int64_t dims[ORR_MAX_RANK];
} orr_box;

/* The boxes that one writer writes; of a tensor there may be several or none. */
typedef struct orr_boxes {
  uint32_t size;
  void* self; /* given back with every call */
  uint64_t count;
  /* Describes a box. The host fills `out` as far as its `size` reaches; the name lives as long as
   * this table. [any thread, as below] */
  void (*box)(void* self, uint64_t number, orr_box* out);
  /* Its elements, row by row, until the next call. Each box is asked for once, so that one at a
   * time lies in memory. */
  orr_status* (*bytes)(void* self, uint64_t number, const void** out);
} orr_boxes;

/* Functions of the host; `to` is what the host has passed. What they get is borrowed. */
typedef void orr_give_bytes(void* to, const void* bytes, uint64_t count);
typedef void orr_give_name(void* to, const char* name);
typedef void orr_give_tensor(void* to, const char* name, const orr_tensor* type);

/* An open checkpoint of the plugin. */
typedef struct orr_checkpoint orr_checkpoint;

typedef struct orr_checkpoint_api {
  uint32_t size;
  void* self;           /* given back with every call */
  const char* format;   /* as scripts name it: "dcp" */
  const char* manifest; /* its file in the directory: ".metadata" */

  /* -- writing. The names of all files that it makes begin with `prefix`, a path in the folder of
   * the save, "DIR/3/shard-00001-plugin-". They are synced when the call returns. */

  /* Writes the files of one writer, and gives what `complete` needs to know of them: bytes without
   * a zero. [any thread] */
  orr_status* (*write)(void* self, const char* prefix, const orr_boxes* boxes, orr_give_bytes* give,
                       void* to);
  /* Gives the manifest's bytes, once all have written: `texts` are what `write` gave, by writers.
   * It may make files, too. [main thread] */
  orr_status* (*complete)(void* self, const char* prefix, const orr_run_facts* facts,
                          const char* const* texts, uint64_t n, orr_give_bytes* give, void* to);

  /* -- reading. */

  /* Whether the directory has a checkpoint of this format, be it damaged: 1 or 0. [main thread, as
   * all below but `read`] */
  int32_t (*serves)(void* self, const char* directory);
  /* Gives the paths in the directory of the files that its manifest names, without a look at
   * them. */
  orr_status* (*files)(void* self, const char* directory, orr_give_name* give, void* to);
  /* Opens it, and checks all of it before any value is used: that no file is missing, cut short or
   * altered, as far as the format tells, and that each element of a tensor is there once. Its files
   * stay readable if they are replaced. */
  orr_status* (*open)(void* self, const char* directory, orr_checkpoint** out);
  /* An error where it does not say which step it is of. */
  orr_status* (*facts)(orr_checkpoint* opened, orr_run_facts* out);
  /* Gives all tensors, which are contiguous row-major. */
  orr_status* (*tensors)(orr_checkpoint* opened, orr_give_tensor* give, void* to);
  /* Writes the elements of a box, row by row. REQUIRES: it is a box of a tensor that was given.
   * [any thread] */
  orr_status* (*read)(orr_checkpoint* opened, const char* name, const int64_t* offset,
                      const int64_t* dims, void* to);
  void (*close)(orr_checkpoint* opened);
} orr_checkpoint_api;

#ifdef __cplusplus
}
#endif
#endif
