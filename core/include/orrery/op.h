/* SPDX-License-Identifier: Apache-2.0
 *
 * op/1: ops that the core does not know, which scripts call as orrery.ops.NAME(x, ..., {option =
 * value}). A plugin gives an op's name, inputs, options, and the shapes of its results.
 *
 * There are two ways to compute the op. The plugin may write it in known ops (ops.h). Then it runs
 * on every device and under every strategy that these run on, with their traffic and cost, and with
 * their gradients, unless the plugin writes the gradient too. Or the plugin leaves the op to kernel
 * plugins (kernel.h), which get an op of that kind with contiguous tensors and the options as
 * attributes. Then `factors` says along which dims the work may be cut, and the plugin writes the
 * gradient. It may do both: then the known ops are what runs where no kernel plugin takes the op.
 * Along other dims inputs are gathered before the op runs, unless the plugin writes with `on_parts`
 * what a rank does that has a part of them: a softmax whose rows are cut needs their largest
 * elements and sums from the other ranks, and no more.
 *
 * Gradients that a plugin writes, in known ops and those of plugins, can be differentiated again.
 *
 * Functions get the same arguments on all ranks, and again when a step is traced anew; what they
 * write must depend on nothing else. Structs, texts and lists are borrowed for the call; those of
 * `describe` live as long as the table.
 */
#ifndef ORRERY_OP_H
#define ORRERY_OP_H

#include <orrery/strategy.h>
#include <orrery/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The description of an op. The host has zeroed it and set `size`; write no field behind that. */
typedef struct orr_op_info {
  uint32_t size;
  int32_t n_in;            /* tensors that it takes, at least 1 */
  const char* name;        /* of letters, digits and _ */
  const char* summary;     /* one line */
  int32_t n_options;       /* of `options` */
  int32_t gradient;        /* 1: `backward` writes it; 0: that of the ops that `forward` writes */
  const orr_attr* options; /* names, each of one of the types but ORR_ATTR_INTS, and the values of
                              those that a call leaves out */
  int32_t n_examples;      /* how many examples there are, at least 1: `orrery check` tries them */
  /* 0: `forward` writes it; 1: kernel plugins compute it; 2: kernel plugins do, and `forward`
   * writes it where none of them takes the op */
  int32_t kernel;
  int32_t n_out; /* its results; 0 counts as 1 */
  /* 1, if `kernel` is not 0: results are sums over each factor of an input that none of their dims
   * has. Where that is the batch, the core calls the kernel for each microbatch and adds up what it
   * makes; samples that pad a microbatch have cotangents of 0, and must then add 0. The results are
   * either all sums over the batch, or none of them is. */
  int32_t sums;
} orr_op_info;

/* What one call of an op costs. The host has zeroed it and set `size`. */
typedef struct orr_op_cost {
  uint32_t size;
  int32_t matrix; /* 1: the flops are those of matrix products, which machines do faster */
  double flops;   /* floating-point operations */
  double bytes;   /* read and written, if nothing stays in a cache */
} orr_op_cost;

/* One call of an op: types of its inputs, and all options in the order of `describe`. */
typedef struct orr_op_call {
  uint32_t size;
  int32_t n_in, n_options;
  const orr_tensor* in;
  const orr_attr* options;
  int32_t n_out;    /* results of the op */
  int32_t reserved; /* 0 */
} orr_op_call;

/* Which part of a call a rank has, where the inputs are cut over an axis of ranks. */
typedef struct orr_op_part {
  uint32_t size;
  int32_t factor;           /* of `part_factors`: the dims that are cut */
  int32_t ranks, rank;      /* of the axis, and this rank's coordinate there */
  const orr_tensor* wholes; /* types of the inputs before they were cut */
} orr_op_part;

/* The functions with which a plugin writes ops. It must return their errors; the call then fails
 * with that text. */
typedef struct orr_writer {
  uint32_t size;
  /* Appends an op; writes its outputs, at most `capacity` of them, and sets *n to their number.
   * Collectives and random numbers are not allowed. */
  orr_status* (*op)(orr_program*, const orr_op_desc*, int32_t* out, int32_t capacity, int32_t* n);
  /* The type of a value. */
  orr_status* (*type)(orr_program*, int32_t value, orr_tensor* out);
  /* In `on_parts` alone: the sum of a value over the ranks, or its maximum; fn is "sum" or "max".
   * Each rank must call it as often, for values of the same types. */
  orr_status* (*reduce)(orr_program*, int32_t value, const char* fn, int32_t* out);
} orr_writer;

typedef struct orr_op_api {
  uint32_t size;
  void* self; /* given back with every call */
  /* How many ops there are; they are numbered from 0. Pure. [main thread] */
  int32_t (*count)(void* self);
  /* Describes op number `op`. Pure. [main thread] */
  orr_status* (*describe)(void* self, int32_t op, orr_op_info* out);
  /* Sets dtype and dims of the n_in inputs of an example; the first dim may be a batch. Options
   * have the values of `describe`. Pure. [main thread] */
  orr_status* (*example)(void* self, int32_t op, int32_t number, orr_tensor* in);
  /* Sets dtype and dims of the results, n_out of them; the core checks each call of `forward`
   * against it. Returns ORR_INVALID and a sentence for inputs that do not fit. Pure.
   * [main thread] */
  orr_status* (*shape)(void* self, int32_t op, const orr_op_call*, orr_tensor* out);
  /* If `kernel` is not 1: writes the op with the inputs `in`; out are its n_out results. If it is
   * 2, the inputs may be parts of those of the whole model, cut as `factors` allows.
   * [main thread] */
  orr_status* (*forward)(void* self, int32_t op, const orr_op_call*, orr_program*,
                         const orr_writer*, const int32_t* in, int32_t* out);
  /* If `gradient` is 1 and there is one result: writes the cotangents dx of the inputs, each of the
   * type of its input (-1: none, as for an integer input), given the result `y` and its cotangent
   * `dy`. [main thread] */
  orr_status* (*backward)(void* self, int32_t op, const orr_op_call*, orr_program*,
                          const orr_writer*, const int32_t* in, int32_t y, int32_t dy, int32_t* dx);
  /* If `kernel` is not 0: sets the factor, a number, of each dim of input number `input` (-1 - k:
   * of result k); -1 for a dim that the kernel needs whole. Dims of one factor have the same extent
   * and are cut alike; each result must have every factor that an input has, unless the op `sums`.
   * Pure. [main thread] */
  orr_status* (*factors)(void* self, int32_t op, const orr_op_call*, int32_t input, int32_t* out);
  /* As `backward`, if there are several results: y and dy have one entry for each. A cotangent is
   * -1 where it is 0, at most all but one of them. May be NULL without such ops. [main thread] */
  orr_status* (*backward_of)(void* self, int32_t op, const orr_op_call*, orr_program*,
                             const orr_writer*, const int32_t* in, const int32_t* y,
                             const int32_t* dy, int32_t* dx);
  /* If `kernel` is not 0: what a call costs that makes results of these types. NULL: as if each
   * element of a result took one flop. Pure. [main thread] */
  orr_status* (*cost)(void* self, int32_t op, const orr_op_call*, const orr_tensor* out,
                      orr_op_cost* cost);
  /* As `factors`, of the dims along which `on_parts` writes the op, where inputs are cut along one
   * of them; a result without that factor is then equal on all ranks. Dims that `factors` gives
   * need none here. Where sums must not depend on the number of ranks, as with `chunk` of
   * orr_edit, inputs are gathered all the same. NULL: all are -1. Pure. [main thread] */
  orr_status* (*part_factors)(void* self, int32_t op, const orr_op_call*, int32_t input,
                              int32_t* out);
  /* Writes what one rank does: `in` are its inputs, parts along their dims of `part->factor`, the
   * others whole; the call has their types. `out` are its parts of the results. The ranks' parts
   * may differ in extent, and none is empty. NULL without part_factors. [any thread] */
  orr_status* (*on_parts)(void* self, int32_t op, const orr_op_call*, const orr_op_part* part,
                          orr_program*, const orr_writer*, const int32_t* in, int32_t* out);
} orr_op_api;

#ifdef __cplusplus
}
#endif
#endif
