/* SPDX-License-Identifier: Apache-2.0
 *
 * op/1: ops that the core has never heard of, for scripts to call as orrery.ops.NAME(x, ...,
 * {option = value}). A plugin says what an op is called, what it takes and what shape it gives.
 *
 * Then it writes the op, as program, in ops that are known (ops.h): so it runs on every device and
 * under every strategy that those do, its traffic and cost are theirs, and its gradient, unless the
 * plugin writes that as well, is theirs too. Or it leaves the op to kernel plugins (kernel.h),
 * which see one of that kind with contiguous tensors and the options as attributes; then `factors`
 * says which dims the work may be cut along, and the plugin writes the gradient.
 *
 * Gradients that a plugin writes, in known ops and those of plugins, are differentiated again where
 * a loss holds derivatives.
 *
 * Calls get the same arguments on all ranks, and again when a step is traced anew: what they write
 * depends on nothing else. Structs, texts and lists are borrowed for the call, those of `describe`
 * live as long as the table.
 */
#ifndef ORRERY_OP_H
#define ORRERY_OP_H

#include <orrery/strategy.h>
#include <orrery/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What an op is. The host has zeroed it and set `size`; write no field that lies behind. */
typedef struct orr_op_info {
  uint32_t size;
  int32_t n_in;            /* tensors that it takes, at least 1 */
  const char* name;        /* of letters, digits and _ */
  const char* summary;     /* one line */
  int32_t n_options;       /* of `options` */
  int32_t gradient;        /* 1: `backward` writes it; 0: that of what `forward` wrote */
  const orr_attr* options; /* names, each of one of the types but ORR_ATTR_INTS, and the values of
                              those that a call leaves out */
  int32_t n_examples;      /* that `example` has, at least 1: what the judge tries */
  int32_t kernel;          /* 1: kernel plugins compute it; 0: `forward` writes it */
} orr_op_info;

/* One call of an op: types of its inputs, and all options in the order of `describe`. */
typedef struct orr_op_call {
  uint32_t size;
  int32_t n_in, n_options;
  const orr_tensor* in;
  const orr_attr* options;
} orr_op_call;

/* What a plugin writes with. Errors are for it to return; the call then fails with their words. */
typedef struct orr_writer {
  uint32_t size;
  /* Appends an op; writes its outputs, at most `capacity` of them, and sets *n to their number.
   * Collectives and random numbers are not for ops. */
  orr_status* (*op)(orr_program*, const orr_op_desc*, int32_t* out, int32_t capacity, int32_t* n);
  /* Type of a value. */
  orr_status* (*type)(orr_program*, int32_t value, orr_tensor* out);
} orr_writer;

typedef struct orr_op_api {
  uint32_t size;
  void* self; /* given back with every call */
  /* How many ops there are; they are numbered from 0. Pure. [main thread] */
  int32_t (*count)(void* self);
  /* Who op number `op` is. Pure. [main thread] */
  orr_status* (*describe)(void* self, int32_t op, orr_op_info* out);
  /* dtype and dims of the n_in inputs of an example, whose first dim may be a batch. Options have
   * their values of `describe`. Pure. [main thread] */
  orr_status* (*example)(void* self, int32_t op, int32_t number, orr_tensor* in);
  /* dtype and dims of the result, whatever `forward` does: each call is held to it. Inputs that do
   * not fit are ORR_INVALID and a sentence. Pure. [main thread] */
  orr_status* (*shape)(void* self, int32_t op, const orr_op_call*, orr_tensor* out);
  /* Where `kernel` is 0: writes the op, of `in` alone; *out is its result. [main thread] */
  orr_status* (*forward)(void* self, int32_t op, const orr_op_call*, orr_program*,
                         const orr_writer*, const int32_t* in, int32_t* out);
  /* Where `gradient` is 1: writes the cotangents dx of the inputs, each of its input's type (-1:
   * none, of an integer input, say), given the result `y` and its cotangent `dy`. [main thread] */
  orr_status* (*backward)(void* self, int32_t op, const orr_op_call*, orr_program*,
                          const orr_writer*, const int32_t* in, int32_t y, int32_t dy, int32_t* dx);
  /* Where `kernel` is 1: a number for each dim of input number `input` (-1: of the result), its
   * factor, -1 where the kernel needs the whole dim. Dims of one factor are as long and are cut
   * alike; each factor of an input is the result's as well. Pure. [main thread] */
  orr_status* (*factors)(void* self, int32_t op, const orr_op_call*, int32_t input, int32_t* out);
} orr_op_api;

#ifdef __cplusplus
}
#endif
#endif
