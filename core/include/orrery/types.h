/* SPDX-License-Identifier: Apache-2.0
 *
 * The types that all of the plugin interface uses: element types, tensors, buffers, statuses. C11,
 * libc headers only.
 *
 * Rules for every struct here: it holds fixed-width integers, doubles and pointers, and whoever
 * makes it fills it completely. Strings are UTF-8, NUL-terminated, and borrowed for the duration of
 * the call unless a comment says otherwise.
 */
#ifndef ORRERY_TYPES_H
#define ORRERY_TYPES_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Element types. Values are part of the ABI; new ones are appended, and a plugin refuses those that
 * it does not know. Reals are IEEE 754 in the machine's byte order, BF16 the upper half of an F32,
 * integers two's complement. BOOL is one byte, 0 or 1. F8_E4M3 (sign, 4 bits of exponent, 3 of
 * fraction; to 448, 0x7f and 0xff are NaN, no infinities) and F8_E5M2 (the upper half of an F16; to
 * 57,344) are those of OCP's "8-bit Floating Point Specification"; ops.h says what takes them. */
enum {
  ORR_F32 = 1,
  ORR_F64 = 2,
  ORR_BF16 = 3,
  ORR_F16 = 4,
  ORR_I32 = 5,
  ORR_I64 = 6,
  ORR_U8 = 7,
  ORR_BOOL = 8,
  ORR_F8_E4M3 = 9,
  ORR_F8_E5M2 = 10
};

/* Bytes of one element of `dtype`; 0 for an unknown dtype. [any thread] */
static inline int64_t orr_dtype_bytes(int32_t dtype) {
  switch (dtype) {
    case ORR_F32:
    case ORR_I32: return 4;
    case ORR_F64:
    case ORR_I64: return 8;
    case ORR_BF16:
    case ORR_F16: return 2;
    case ORR_U8:
    case ORR_BOOL:
    case ORR_F8_E4M3:
    case ORR_F8_E5M2: return 1;
    default: return 0;
  }
}

/* Where a buffer lies. Memory of the tiers HOST, COMM and PINNED has a host address; memory of the
 * tier DEVICE need not have one. A device allocates PINNED and DEVICE memory, a comm backend COMM
 * memory. */
enum {
  ORR_TIER_HOST = 0,   /* ordinary memory */
  ORR_TIER_COMM = 1,   /* host memory that the backend's peers can read in place */
  ORR_TIER_PINNED = 2, /* host memory that a device copies from and to by itself */
  ORR_TIER_DEVICE = 3, /* memory of the device itself */
  ORR_TIER_DISK = 4    /* files in which the host keeps tensors; no buffer lies there */
};

/* The most dims that a tensor may have. */
enum { ORR_MAX_RANK = 8 };

/* A tensor's type and layout, without its place. Strides are in elements, never negative; 0 repeats
 * one element along that dim. A dim of 0 elements makes the tensor empty: it has no bytes, and
 * nothing of it is read. Entries behind `rank` are ignored. */
typedef struct orr_tensor {
  int32_t dtype;                 /* ORR_F32 ... */
  int32_t rank;                  /* 0 .. ORR_MAX_RANK; rank 0 is a scalar */
  int64_t dims[ORR_MAX_RANK];    /* elements along each dim, outermost first */
  int64_t strides[ORR_MAX_RANK]; /* contiguous row-major: the product of the dims behind */
} orr_tensor;

/* One allocation. A device makes and frees it, or a comm backend (tier COMM); all may read this
 * struct. `host` is its address if the CPU may access it, else NULL. `native` is the device's own
 * handle (CUDA device pointer, cl_mem), of the kind that `native_kind` names. */
typedef struct orr_memory {
  uint32_t size;        /* of this struct */
  int32_t tier;         /* ORR_TIER_HOST ... */
  uint64_t bytes;       /* its length; no buffer in it ends behind it */
  void* host;           /* address for the CPU, else NULL */
  void* native;         /* handle for the device's own calls; may be a host address */
  char native_kind[16]; /* "host", "cuda", "opencl": which calls may use `native` */
  void* owner;          /* private to the maker */
} orr_memory;

/* A range of an allocation, which kernels and collectives read and write. It is no plain pointer,
 * because not every device has these. A function that gets a buffer borrows the memory for the
 * call or, if the call enqueues work, until that work is done. The struct itself may only be read
 * during the call. */
typedef struct orr_buffer {
  const orr_memory* memory; /* outlives the borrowing; NULL only where bytes is 0 */
  uint64_t offset;          /* bytes from its beginning */
  uint64_t bytes;
} orr_buffer;

/* The CPU address of a buffer. REQUIRES: its memory has a host address. [any thread] */
static inline void* orr_buffer_host(const orr_buffer* b) {
  return (char*)b->memory->host + b->offset;
}

/* The outcome of a call: NULL is success, else an error. The host's `error` (host.h) makes one, and
 * the host releases it; a plugin that gets one from a call of the host returns it or releases it.
 * After a call that fails the caller need not release anything, and must not use out parameters.
 * No exception may leave a function, in either direction; a function that returns no status cannot
 * fail. */
typedef struct orr_status orr_status;

/* Status codes. A program that ends because of an error has its code as exit code. A host treats a
 * code that it does not know as ORR_FAILED. */
enum {
  ORR_OK = 0,
  ORR_FAILED = 1,        /* the operation was tried and failed */
  ORR_INVALID = 2,       /* the caller's argument is wrong */
  ORR_UNIMPLEMENTED = 3, /* this table has no such operation */
  ORR_UNAVAILABLE = 69,  /* the device, driver or peer library is not here */
  ORR_RETRY = 75,        /* a peer was lost or the job was told to stop: retry from a checkpoint */
  ORR_DEADLINE = 124     /* a wait ended without an answer */
};

#ifdef __cplusplus
}
#endif
#endif
