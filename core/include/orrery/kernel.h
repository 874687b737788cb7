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
 *
 * A plugin may compute several ops as one, whatever they are: `claim` is shown the ops of a rank's
 * program, and names groups of them. The core then asks `supports` for an op of the kind "group",
 * and takes it as any other op. So a fusion needs no line in the core.
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

typedef struct orr_group orr_group;

/* An op with the shapes and strides that it has in a program. Borrowed for the call, with all that
 * it points to. */
typedef struct orr_op {
  uint32_t size;
  int32_t n_in, n_out, n_attrs;
  const char* kind;      /* "matmul", "pointwise", ... */
  const orr_tensor* in;  /* n_in of them, in the order of ops.h */
  const orr_tensor* out; /* n_out */
  const orr_attr* attrs;
  const orr_expr* expr;   /* pointwise, matmul_pointwise; else NULL */
  const char* where;      /* module path and Lua line, for messages */
  const orr_group* group; /* of the kind "group": what it stands for; else NULL */
} orr_op;

/* An op of a group or of a program, with the numbers of the values that it reads and makes. Its
 * tensors are contiguous, and it has all attributes that docs/ops.md lists: ops of a program are
 * not yet in the form of ops.h, so that a matmul has "ta" and "tb". */
typedef struct orr_group_op {
  uint32_t size;
  int32_t call; /* ops of one group have equal numbers: they run in the same calls of a step */
  const orr_op* op;
  const int32_t* in;  /* op->n_in values */
  const int32_t* out; /* op->n_out values */
} orr_group_op;

/* Ops in an order in which they can run. Values are numbered from 0. Borrowed, with all that it
 * points to. */
struct orr_group {
  uint32_t size;
  int32_t n_ops, n_values;
  int32_t n_in, n_out;
  int32_t fused; /* of a program: 1 the second time that `claim` is shown it; else 0 */
  const orr_group_op* ops;
  const int32_t* in;  /* the values that an op of the kind "group" has as inputs, in their order,
                         where they may have strides; of a program those that no op makes */
  const int32_t* out; /* those that it has as outputs; other values exist in the kernel alone, which
                         need not store them; of a program those that others than ops read, such as
                         states, results and sums over ranks */
};

/* What `claim` calls for each group that it names: `ops` are the places of its ops in the program,
 * rising. Returns 1 if the group becomes one op, else 0. It does if `supports` takes that op with a
 * score of at least that of each of its ops alone; if its ops have one number `call`, none is an
 * exchange or in an earlier group, or reads a sum over the batch that another of them makes; and if
 * the group can run in the place of one of its ops: what it reads is made before that, and what it
 * makes is read behind. */
typedef struct orr_claims {
  uint32_t size;
  void* arg;
  int32_t (*take)(void* arg, const int32_t* ops, int32_t n_ops);
} orr_claims;

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
  uint32_t takes;       /* ORR_TAKES_...: what it knows of that kernels did not always know */
} orr_support;

/* What an op may have that kernels older than it would ignore. A kernel that does not say that it
 * takes it is not used for such an op. */
enum {
  ORR_TAKES_GROUPED_HEADS = 1, /* attention: fewer heads of keys and values than of queries */
  ORR_TAKES_WINDOW = 2,        /* attention: int "window" */
  ORR_TAKES_GROUPED_SUMS = 4   /* matmul: with G > 1 leaves, or operands of more than three dims */
};

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

  /* Names groups of the program's ops that the plugin computes as one op each, with the bits that
   * they have alone, or with numerics of another name. Pure: the same groups for the same program.
   * Is asked twice for each program of a rank, after it has been cut: before other ops are fused,
   * and when pointwise ops have become one, and one with the product that they read (`fused`). May
   * be NULL. [main thread, and threads that plan] */
  orr_status* (*claim)(void* self, const orr_group* program, const orr_claims* claims);
} orr_kernel_api;

#ifdef __cplusplus
}
#endif
#endif
