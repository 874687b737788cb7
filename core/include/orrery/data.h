/* SPDX-License-Identifier: Apache-2.0
 *
 * data/1: a reader of one format of files, whose name is the plugin's. Scripts call
 * orrery.data.open(NAME, path, {option = value}).
 *
 * A dataset has a number of samples, each with the same fields. The reader says what the fields
 * are, and copies the samples that it is asked for, their elements as the files hold them. The host
 * makes the dtype of them that the script asks for, chooses the samples of a batch, shards and
 * mixes datasets, and reads ahead on a thread.
 *
 * A dataset is the same on all ranks, and whenever it is opened: it depends on nothing but path,
 * options and files.
 *
 * A plugin may have tokenizers as well as a reader, or instead of one: orrery.data.tokenizer(NAME,
 * {option = value}, text).
 */
#ifndef ORRERY_DATA_H
#define ORRERY_DATA_H

#include <orrery/strategy.h>
#include <orrery/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An open dataset, private to the plugin. */
typedef struct orr_data orr_data;

/* What a dataset says of itself. The host has zeroed it and set `size`; write no field behind
 * that. */
typedef struct orr_data_info {
  uint32_t size;
  int32_t n_fields; /* at least 1 */
  int64_t samples;  /* at least 1 */
  int64_t window; /* tokens in a sample, if sample i + 1 is sample i shifted by one token; else 0 */
  int32_t slow;   /* 1: `read` waits for files, or computes, so that a thread should read ahead */
  int32_t n_classes; /* how many classes have names */
} orr_data_info;

/* A field of every sample. Likewise zeroed; the texts live until `close`. */
typedef struct orr_data_field {
  uint32_t size;
  int32_t rank;
  int64_t dims[ORR_MAX_RANK]; /* of one sample */
  const char* name;           /* "x" */
  const char* elements;       /* what `read` writes, as NumPy names it: "<f4", ">i2", "|u1",
                                 "bfloat16" */
  int32_t dtype;  /* ORR_F32 ...: of the tensors if the script asks for none; 0: the one that takes
                     all values of `elements` */
  int32_t pixels; /* 1: bytes become numbers from 0 to 1, where the tensors are of a real dtype */
} orr_data_field;

/* A tokenizer, private to the plugin. */
typedef struct orr_tokenizer orr_tokenizer;
/* Functions of the host that take ids, or bytes of text, in one call or several. `to` is what the
 * host has passed; the rest is borrowed for the call. */
typedef void orr_give_ids(void* to, const int32_t* ids, int64_t n);
typedef void orr_give_text(void* to, const char* text, int64_t bytes);

/* The first six functions are those of a reader, the others of a tokenizer. */
typedef struct orr_data_api {
  uint32_t size;
  void* self; /* given back to `open` */
  /* Opens what lies at a path. An error names path, what is wrong and what to do. A table among the
   * options is asked for by "outer.inner", a list by "list.1", "list.2"; true is the integer 1.
   * Options of a script for which `open` never asks are refused. [main thread] */
  orr_status* (*open)(void* self, const char* path, const orr_options*, orr_data** out);
  /* Describes the dataset, a field of it by its number from 0, and names a class, likewise.
   * [main thread] */
  orr_status* (*info)(orr_data*, orr_data_info* out);
  orr_status* (*field)(orr_data*, int32_t number, orr_data_field* out);
  const char* (*class_name)(orr_data*, int32_t number);
  /* Writes n samples of every field f, contiguous and one after another, to to[f]; a field whose
   * place is NULL is not wanted. The samples are numbers from 0, in any order and repeated.
   * [any thread, also several at once] */
  orr_status* (*read)(orr_data*, const int64_t* samples, int64_t n, void* const* to);
  /* Releases the dataset and its texts. [any thread] */
  void (*close)(orr_data*);

  /* Makes a tokenizer, of files that options name or out of a text that it learns from, of `bytes`
   * bytes, 0 if there is none; `name` is what errors call the text. Options as for `open`. [main
   * thread] */
  orr_status* (*make)(void* self, const orr_options*, const char* text, int64_t bytes,
                      const char* name, orr_tokenizer** out);
  /* How many ids there are; they are 0..vocab-1. [any thread] */
  int64_t (*vocab)(orr_tokenizer*);
  /* Text as ids, and back. Returns ORR_INVALID for text that it cannot express, whose name is
   * `name`, and for an id that it does not have. [any thread] */
  orr_status* (*encode)(orr_tokenizer*, const char* text, int64_t bytes, const char* name,
                        orr_give_ids* give, void* to);
  orr_status* (*decode)(orr_tokenizer*, const int64_t* ids, int64_t n, orr_give_text* give,
                        void* to);
  /* Writes files into a directory that there is. [main thread] */
  orr_status* (*save)(orr_tokenizer*, const char* directory);
  /* Releases the tokenizer. [any thread] */
  void (*release)(orr_tokenizer*);
} orr_data_api;

#ifdef __cplusplus
}
#endif
#endif
