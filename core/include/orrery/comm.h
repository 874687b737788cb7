/* SPDX-License-Identifier: Apache-2.0
 *
 * comm/1: moves bytes between ranks. One struct describes every operation. All ranks of a
 * communicator post the same operations in the same order, and only one thread at a time uses a
 * communicator.
 *
 * Waiting. No call blocks past its deadline. The deadline counts from the last sign of life of the
 * peers that are waited for. When it passes, or a peer dies, the call returns ORR_DEADLINE or
 * ORR_RETRY with the rank to blame in the text ("rank 2 died", "rank 1 has not answered for 30 s in
 * all_reduce 'bucket 3'"). The communicator is then unusable: every later call on it fails at once.
 *
 * Several at once. With ORR_COMM_CONCURRENT, operations of different communicators of one world may
 * be in progress at the same time; each communicator has its own thread and its own order. Ranks do
 * not agree on an order between communicators, so an operation must not wait for one of another
 * communicator. `world`, `split`, `allocate`, `free` and `destroy` are called while no operation of
 * the world is in progress. Without the flag, one thread uses all communicators.
 */
#ifndef ORRERY_COMM_H
#define ORRERY_COMM_H

#include <orrery/device.h>
#include <orrery/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Operations. Every backend has SEND and RECV. The core composes of these the operations that are
 * not among orr_comm_caps.ops, those that add in a dtype that is not among its dtypes, and trees in
 * memory of a device, whose kernels add. Counts are in elements of `dtype`. All may be in place
 * (send.memory == recv.memory and equal offset, or the rank's own part of recv for all_gather and
 * reduce_scatter). */
enum {
  ORR_COLL_BARRIER = 1,
  ORR_COLL_BROADCAST = 2,      /* count from root */
  ORR_COLL_ALL_REDUCE = 3,     /* count; added in rank order 0..P-1 by backends that can */
  ORR_COLL_REDUCE_SCATTER = 4, /* send: sum of counts[]; recv: counts[rank] */
  ORR_COLL_ALL_GATHER = 5,     /* send: counts[rank]; recv: sum of counts[] in rank order */
  ORR_COLL_ALL_TO_ALL = 6, /* counts[p] to peer p, recv_counts[p] from peer p, packed in order */
  ORR_COLL_SEND = 7,       /* count to peer, tag */
  ORR_COLL_RECV = 8,       /* count from peer, tag */
  ORR_COLL_REDUCE = 9,     /* count to root */
  /* Tree all-reduce (ops.h, LEAVES), optional, sums only. `send` holds this rank's maximal nodes of
   * the leaves [leaf_first[rank], leaf_first[rank+1]) out of leaf_first[size], one after another,
   * `count` elements each; recv gets the root of the tree. A rank may have no leaf: then it only
   * receives. In place: recv is the place of the first node. */
  ORR_COLL_TREE_ALL_REDUCE = 10,
  /* The same tree, optional, but rank r receives only the elements [recv_counts[r], recv_counts[r]
   * + counts[r]). These slices are disjoint and need not cover all elements. In place: recv is the
   * place of the slice in the first node. */
  ORR_COLL_TREE_REDUCE_SCATTER = 11
};

enum { ORR_RED_SUM = 1, ORR_RED_PROD = 2, ORR_RED_MIN = 3, ORR_RED_MAX = 4 };

/* Bits of orr_comm_caps.flags. */
enum {
  ORR_COMM_STREAM_ORDERED = 1, /* post enqueues on the stream; else the calling thread works */
  ORR_COMM_DETERMINISTIC = 2,  /* same inputs, same ranks: same bits on every rank and run */
  ORR_COMM_ANY_SOURCE = 4,     /* RECV with peer = -1 */
  ORR_COMM_REGISTERED = 8,     /* peers read memory from `allocate` in place */
  ORR_COMM_PEER_DEATH = 16,    /* it notices a dead peer before the deadline */
  ORR_COMM_PAIR_ORDER = 32,    /* messages of a pair match in order: tags must agree, not select */
  ORR_COMM_DEVICE_MEMORY = 64, /* `allocate` gives memory of tier DEVICE, without host address */
  ORR_COMM_SHARED = 128,       /* ranks of one host can use `allocate_shared` */
  ORR_COMM_CONCURRENT = 256    /* several communicators may be in progress at once */
};

typedef struct orr_comm_caps {
  uint32_t size;
  uint32_t flags;
  uint64_t ops;      /* bit n: operation n above */
  uint64_t dtypes;   /* bit n: dtype n of types.h, for reductions; movement takes every dtype */
  uint64_t tiers;    /* bit n: memory tier n may be sent and received */
  int32_t max_ranks; /* 0: no limit */
} orr_comm_caps;

/* What the backend gets to form the world. The store is a table of keys and values that the ranks
 * of the job share; `get` waits for the key, up to the deadline. Values are bytes. From the start
 * the key "address/3" has the address of rank 3's host, in numbers; on one host a loopback address.
 * */
typedef struct orr_comm_boot {
  uint32_t size;
  int32_t rank, world_size, local_rank, local_size;
  int64_t deadline_ns; /* default of every wait */
  const char* job;     /* unique name of the job, safe in file names */
  void* store;
  orr_status* (*put)(void* store, const char* key, const void* value, uint64_t bytes);
  orr_status* (*get)(void* store, const char* key, void* value, uint64_t capacity, uint64_t* bytes,
                     int64_t deadline_ns);
  /* Whether `rank` is known to have ended: 0 if not, else its number in the order in which ranks
   * ended, from 1; the others have ended because of the first. Cheap. [any thread] */
  int32_t (*dead)(void* store, int32_t rank);
  /* To be called when this rank has waited `waited_ns` for `rank`, before blaming it: asks that
   * rank's process, not over the backend, what it is doing, and writes the answer to `what`.
   * Returns 0: it does not answer within half a second (it is stopped, or cannot be asked); 1: it
   * lives, but takes longer than it may; 2: it lives, and is busy with work that may take longer
   * ("saving a checkpoint for 12 s"): go on waiting; 3: it waits for others itself (see `waits`).
   * NULL if the host is older. [any thread] */
  int32_t (*at_work)(void* store, int32_t rank, int64_t waited_ns, char* what, uint64_t capacity);
  /* Tells all ranks why the world has ended; the first reason that any rank gives counts. NULL if
   * the host is older, as are the next two. [any thread] */
  void (*blame)(void* store, int32_t code, const char* why);
  /* Writes that reason, if it is known here, and returns its code; else 0. Cheap. [any thread] */
  int32_t (*blamed)(void* store, char* why, uint64_t capacity);
  /* Says that a thread of this rank begins (1) or ends (0) waiting for other ranks. [any thread] */
  void (*waits)(void* store, int32_t begins);
} orr_comm_boot;

typedef struct orr_comm orr_comm;
typedef struct orr_work orr_work;

/* One operation. Set `size`, zero the rest, then set what the operation uses. Borrowed for the call
 * to post; buffers are borrowed until the work is done. */
typedef struct orr_coll {
  uint32_t size;
  int32_t op, dtype, redop;
  int32_t root_or_peer, tag;
  orr_buffer send, recv;
  int64_t count;
  const int64_t* counts;      /* world_size of them */
  const int64_t* recv_counts; /* for all_to_all; tree_reduce_scatter: the first elements */
  const int64_t* leaf_first;  /* tree operations: world_size + 1 of them */
  orr_stream* stream;         /* stream-ordered backends: the device's own handle (device.h) */
  int64_t deadline_ns;        /* 0: the communicator's */
  uint64_t sequence; /* the number of this operation on the communicator; equal on all ranks */
  const char* name;  /* "bucket 3"; name and where are for messages and order checks */
  const char* where; /* Lua file:line */
  int32_t* source;   /* RECV from -1: gets the sender's rank when the work is done; or NULL */
} orr_coll;

typedef struct orr_comm_api {
  uint32_t size;
  void* self;

  /* Gives facts of the backend, and whether it works here (0 and a reason if not). No side effects.
   * The host has zeroed `out` and set its size: write no field behind that. [main thread] */
  int32_t (*probe)(void* self, orr_comm_caps* out, char* reason, uint32_t reason_bytes);

  /* Forms the world. Collective over all ranks of the job. [main thread] */
  orr_status* (*world)(void* self, const orr_comm_boot*, orr_comm** out);
  /* Collective over `parent`: ranks with equal color >= 0 form one communicator, ordered by key
   * then rank; color -1 gets *out = NULL. [communication thread] */
  orr_status* (*split)(orr_comm* parent, int32_t color, int32_t key, orr_comm** out);
  /* This process's rank in the communicator, and the number of ranks; fixed. [any thread] */
  int32_t (*rank)(orr_comm*);
  int32_t (*world_size)(orr_comm*);

  /* Posts n operations; n > 1 is a group whose sends and receives start together. All ranks post
   * the same operations in the same order. *out is one handle for the group. [communication
   * thread] */
  orr_status* (*post)(orr_comm*, const orr_coll* ops, int32_t n, orr_work** out);
  /* Completes the work (progress may be made only here) and frees the handle. [communication
   * thread] */
  orr_status* (*wait)(orr_comm*, orr_work*);

  /* Allocates zeroed memory that peers in this communicator can access in place (tier COMM).
   * Collective; same bytes on all ranks. Backends without REGISTERED or DEVICE_MEMORY return
   * ORR_UNIMPLEMENTED. [main thread] */
  orr_status* (*allocate)(orr_comm*, uint64_t bytes, orr_memory** out);
  /* Frees it. Collective. REQUIRES: no work on it is pending. [main thread] */
  void (*free)(orr_comm*, orr_memory*);

  /* Aborts the communicator here and, where possible, on its peers: pending and later calls end
   * with ORR_RETRY and `reason`. [any thread] */
  void (*abort)(orr_comm*, const char* reason);
  /* NULL if the communicator works; else a new status that names the rank to blame. [any thread] */
  orr_status* (*async_error)(orr_comm*);
  /* Destroys the communicator, whether it works or not. REQUIRES: no work is pending, and its
   * children and memory are gone. Local, never waits. [main thread] */
  void (*destroy)(orr_comm*);

  /* The bytes that this rank has sent since creation, by the definition of each operation's traffic
   * (sdk/traffic.hpp). [any thread] */
  uint64_t (*bytes_sent)(orr_comm*);

  /* Allocates zeroed memory that all ranks of this communicator share (tier COMM): what one rank
   * writes before a barrier, every rank reads after it, at the same offset. Collective; same bytes
   * on all ranks; freed by `free`. Backends without SHARED, and communicators whose ranks are not
   * on one host, return ORR_UNIMPLEMENTED on all ranks. [main thread] */
  orr_status* (*allocate_shared)(orr_comm*, uint64_t bytes, orr_memory** out);
} orr_comm_api;

#ifdef __cplusplus
}
#endif
#endif
