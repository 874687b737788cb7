/* SPDX-License-Identifier: Apache-2.0
 *
 * kernel/1: the arithmetic. The core asks every kernel plugin of a device which ops it supports,
 * and takes the one with the highest score. `measure` is pure, so that memory can be planned
 * without a device; `prepare` is called once per op of a program, `launch` once per step.
 *
 * ops.h lists the ops, with shapes, attributes and the order of every sum.
 *
 * Several plugins may work on one device, and a plugin need not have more than one op: other
 * plugins compute the ops that it does not support. If it supports an op, it does so for every call
 * with those shapes, attributes (with leaves, where the op sums over the batch) and strides. Newer
 * hosts may ask for ops, dtypes, attributes and functions that a plugin does not know: it answers
 * with score 0 and a reason.
 */
#ifndef ORRERY_KERNEL_H
#define ORRERY_KERNEL_H

#include <orrery/device.h>
#include <orrery/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An attribute of an op: a named integer, real, string or list of integers. ops.h gives the values
 * of attributes that are absent. */
enum { ORR_ATTR_INT = 1, ORR_ATTR_REAL = 2, ORR_ATTR_TEXT = 3, ORR_ATTR_INTS = 4 };
typedef struct orr_attr {
  const char* name; /* "eps" */
  int32_t type;     /* ORR_ATTR_INT ...: which of the fields below is set */
  int32_t count;    /* of `ints` */
  int64_t i;
  double f;
  const char* text; /* borrowed, as is `ints` */
  const int64_t* ints;
} orr_attr;

/* One instruction of a pointwise expression; instruction k defines register k. a, b, c are earlier
 * registers (or an input number), by function; see ops.h. The result has dtype `dtype`. */
typedef struct orr_instr {
  int32_t fn;       /* ORR_FN_ADD ... (ops.h) */
  int32_t dtype;    /* of the register that it defines; the result is rounded to it at once */
  int32_t a, b, c;  /* operands; those that the function does not take are ignored */
  int32_t reserved; /* 0 */
  double imm;       /* of CONST and RAND */
} orr_instr;

/* A pointwise expression: straight-line code, run for each element. outputs[j] is the register
 * stored to output j; its dtype is the output's. Borrowed for the call, with its lists. */
typedef struct orr_expr {
  uint32_t size;
  int32_t n_instrs;
  int32_t n_outputs;
  int32_t reserved;
  const orr_instr* instrs;
  const int32_t* outputs;
} orr_expr;

/* An op with the shapes and strides that it has in a program. Borrowed for the call, with all that
 * it points to. */
typedef struct orr_op {
  uint32_t size;
  int32_t n_in, n_out, n_attrs;
  const char* kind;      /* "matmul", "pointwise", ... */
  const orr_tensor* in;  /* n_in of them, in the order of ops.h */
  const orr_tensor* out; /* n_out */
  const orr_attr* attrs;
  const orr_expr* expr; /* pointwise, matmul_pointwise, pointwise_next; else NULL */
  const char* where;    /* module path and Lua line, for messages */
} orr_op;

/* The answer of `supports`. Score 0 means no, with the reason. The host has zeroed it and set
 * `size`; write no field behind that. */
typedef struct orr_support {
  uint32_t size;
  int32_t score;     /* reference 1, a tuned library 50, own kernel for this machine 100 */
  char numerics[64]; /* names the order of every sum and the accumulators: equal id = equal bits */
  char reason[96];   /* why not, if score is 0 */
  uint32_t strided_in;  /* bit i: input i may have any strides (else contiguous row-major) */
  uint32_t strided_out; /* bit i: output i may have any strides whose last is 1 */
  int32_t inplace;      /* k+1: output 0 may be the same buffer as input k; 0: never */
  int32_t capturable;   /* 1: a launch may be recorded (device.h, capture_begin); 0: never */
} orr_support;

/* The answer of `measure`. */
typedef struct orr_kernel_size {
  uint32_t size;
  uint64_t workspace; /* bytes of scratch that launch needs; contents need not survive a launch */
} orr_kernel_size;

/* A prepared op, defined by the plugin. */
typedef struct orr_kernel orr_kernel;

typedef struct orr_kernel_api {
  uint32_t size;
  void* self;      /* passed to the calls that take it */
  char device[16]; /* the device it works on: "host" or the name of a device/1 table */

  /* Whether and how well this machine can run the plugin at all; without side effects, and without
   * opening the device. Score 0 with a reason ("no NVIDIA driver here"), cut to reason_bytes with
   * its end, turns the plugin off. [main thread] */
  int32_t (*probe)(void* self, char* reason, uint32_t reason_bytes);

  /* Whether the plugin computes the op, and its conditions. Pure: the same answer for the same op,
   * without a device, so that a plan is the same with and without one. [main thread] */
  void (*supports)(void* self, const orr_op*, orr_support* out);

  /* What a launch of the op needs in addition to its tensors. Pure: needs no device. REQUIRES:
   * `supports` says yes. [main thread] */
  orr_status* (*measure)(void* self, const orr_op*, orr_kernel_size* out);

  /* Makes a kernel that can be launched and needs no more than `measure` said. The op is borrowed:
   * copy what you keep. The caller owns the kernel until it calls `release`, once, when no launch
   * is pending. A launch must not allocate or wait. REQUIRES: `supports` says yes, and the device
   * is open. [main thread] */
  orr_status* (*prepare)(void* self, const orr_op*, orr_kernel** out);
  /* Frees what `prepare` made. [main thread] */
  void (*release)(void* self, orr_kernel*);

  /* Runs or enqueues the kernel. in, out: one buffer per tensor of the op, in order, borrowed until
   * the work is done; workspace as measured, NULL if 0. Outputs never overlap inputs, except for
   * the permitted in-place pair (same address). On a device without streams the work is done at
   * return. Bad data (a label outside the classes) is an error that names the row and the value. It
   * is returned here or, if it shows only when the stream runs, by event_sync; then its text begins
   * with the op's `where`. [compute thread of the device; sums of exchanges on the communication
   * thread at the same time: one thread at a time for each kernel and stream] */
  orr_status* (*launch)(orr_kernel*, orr_stream*, const orr_buffer* in, const orr_buffer* out,
                        const orr_buffer* workspace);
} orr_kernel_api;

#ifdef __cplusplus
}
#endif
#endif
