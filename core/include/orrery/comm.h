/* SPDX-License-Identifier: Apache-2.0
 *
 * comm/1: bytes between ranks. One descriptor for every operation, posted in the same order on
 * every rank of a communicator; the core drives one communicator from one thread at a time.
 *
 * Waiting. No call blocks past its deadline. A deadline is counted from the last sign of life of
 * the peers that are waited for; when it passes, or a peer dies, the call returns ORR_DEADLINE or
 * ORR_RETRY with the culprit's rank in the text ("rank 2 died", "rank 1 has not answered for 30 s
 * in all_reduce 'bucket 3'"), the communicator is poisoned, and every later call on it fails at
 * once.
 *
 * Several at once. With ORR_COMM_CONCURRENT, operations of different communicators of one world may
 * be in progress at the same time, each communicator driven by a thread of its own, in its own
 * order. Ranks agree on no order between communicators, so that no operation may wait for one of
 * another communicator. `world`, `split`, `allocate`, `free` and `destroy` are called while no
 * operation of the world is in progress. Without it, one thread drives all communicators.
 */
#ifndef ORRERY_COMM_H
#define ORRERY_COMM_H

#include <orrery/device.h>
#include <orrery/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Operations. SEND and RECV every backend has; what else is not among its orr_comm_caps.ops, or
 * adds in a dtype that is not among its dtypes, the core composes of these; so it does trees of
 * memory of a device, whose kernels add. Counts are in elements of `dtype`. All may be in place
 * (send.memory == recv.memory and equal offset, or the rank's own part of recv for all_gather and
 * reduce_scatter). */
enum {
  ORR_COLL_BARRIER = 1,
  ORR_COLL_BROADCAST = 2,      /* count from root */
  ORR_COLL_ALL_REDUCE = 3,     /* count; folded in rank order 0..P-1 by backends that can */
  ORR_COLL_REDUCE_SCATTER = 4, /* send: sum of counts[]; recv: counts[rank] */
  ORR_COLL_ALL_GATHER = 5,     /* send: counts[rank]; recv: sum of counts[] in rank order */
  ORR_COLL_ALL_TO_ALL = 6, /* counts[p] to peer p, recv_counts[p] from peer p, packed in order */
  ORR_COLL_SEND = 7,       /* count to peer, tag */
  ORR_COLL_RECV = 8,       /* count from peer, tag */
  ORR_COLL_REDUCE = 9,     /* count to root */
  /* Tree all-reduce (ops.h, LEAVES), optional, sums only. `send` holds this rank's maximal nodes of
   * the leaves [leaf_first[rank], leaf_first[rank+1]) out of leaf_first[size], one after another,
   * `count` elements each; recv gets the root of the tree. A rank may own no leaf. In place: recv
   * is the first node's place; a rank without leaves only receives. */
  ORR_COLL_TREE_ALL_REDUCE = 10,
  /* The same tree, optional, of which rank r receives the elements [recv_counts[r], recv_counts[r]
   * + counts[r]) alone; slices are disjoint and may leave elements out. In place: recv is the
   * slice's own place in the first node. */
  ORR_COLL_TREE_REDUCE_SCATTER = 11
};

enum { ORR_RED_SUM = 1, ORR_RED_PROD = 2, ORR_RED_MIN = 3, ORR_RED_MAX = 4 };

/* Bits of orr_comm_caps.flags. */
enum {
  ORR_COMM_STREAM_ORDERED =
      1, /* post enqueues on the stream; else the call's thread moves the bytes */
  ORR_COMM_DETERMINISTIC = 2,  /* same inputs, same ranks: same bits on every rank and run */
  ORR_COMM_ANY_SOURCE = 4,     /* RECV with peer = -1 */
  ORR_COMM_REGISTERED = 8,     /* memory from `allocate` is read by peers in place */
  ORR_COMM_PEER_DEATH = 16,    /* notices a dead peer before the deadline */
  ORR_COMM_PAIR_ORDER = 32,    /* messages of a pair match in order; tags must agree, not select */
  ORR_COMM_DEVICE_MEMORY = 64, /* `allocate` gives memory of tier DEVICE, without host address */
  ORR_COMM_SHARED = 128,       /* ranks of one host have `allocate_shared` */
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

/* What the host gives to form the world. The store is a key-value table shared by the ranks of the
 * job; `get` waits for the key, up to the deadline. Values are bytes. "address/3" is there from the
 * start: where rank 3's host is reached, in numbers; on one host a loopback address. */
typedef struct orr_comm_boot {
  uint32_t size;
  int32_t rank, world_size, local_rank, local_size;
  int64_t deadline_ns; /* default of every wait */
  const char* job;     /* unique name of the job, safe in file names */
  void* store;
  orr_status* (*put)(void* store, const char* key, const void* value, uint64_t bytes);
  orr_status* (*get)(void* store, const char* key, void* value, uint64_t capacity, uint64_t* bytes,
                     int64_t deadline_ns);
  /* Whether the launcher has seen `rank` end: 0 alive or not known, else how many ranks had ended
   * when it did: the first is why the others have. Cheap. [any thread] */
  int32_t (*dead)(void* store, int32_t rank);
  /* For who has waited `waited_ns` for `rank`, and would blame it: asks its process what it is at,
   * apart from the backend. 0: it does not answer within half a second (stopped, or nobody can ask
   * it); 1: it lives, and has taken longer than it may; 2: it lives, and is at work of its own
   * that may take longer ("saving a checkpoint for 12 s"): wait on; 3: it waits for others itself
   * (see `waits`). Null where a host is older. [any thread] */
  int32_t (*at_work)(void* store, int32_t rank, int64_t waited_ns, char* what, uint64_t capacity);
  /* Tells all ranks why the world has ended; the first reason that any rank gives counts. Null
   * where a host is older, as are the next two. [any thread] */
  void (*blame)(void* store, int32_t code, const char* why);
  /* That reason, once it is known here, and its code; 0 while there is none. Cheap. [any thread] */
  int32_t (*blamed)(void* store, char* why, uint64_t capacity);
  /* A thread of this rank begins (1) or ends (0) to wait for other ranks. [any thread] */
  void (*waits)(void* store, int32_t begins);
} orr_comm_boot;

typedef struct orr_comm orr_comm;
typedef struct orr_work orr_work;

/* One operation. Fill `size`, zero the rest, set what the operation uses. Borrowed for the call to
 * post; buffers are borrowed until the work is done. */
typedef struct orr_coll {
  uint32_t size;
  int32_t op, dtype, redop;
  int32_t root_or_peer, tag;
  orr_buffer send, recv;
  int64_t count;
  const int64_t* counts;      /* world_size of them */
  const int64_t* recv_counts; /* all_to_all; tree_reduce_scatter: first elements */
  const int64_t* leaf_first;  /* tree: world_size + 1 */
  orr_stream* stream;         /* stream-ordered backends: the device's own handle (device.h) */
  int64_t deadline_ns;        /* 0: the communicator's */
  uint64_t sequence; /* number of this operation on this communicator; equal on all ranks */
  const char* name;  /* "bucket 3"; with where, for messages and order checks */
  const char* where; /* Lua file:line */
  int32_t* source;   /* RECV from -1: gets the sender's rank when the work is done; or NULL */
} orr_coll;

typedef struct orr_comm_api {
  uint32_t size;
  void* self;

  /* Static facts, and whether the backend works here (0 and a reason if not). No side effects. The
   * host has zeroed `out` and set its size: write no field that lies behind. [main thread] */
  int32_t (*probe)(void* self, orr_comm_caps* out, char* reason, uint32_t reason_bytes);

  /* Collective over all ranks of the job. [main thread] */
  orr_status* (*world)(void* self, const orr_comm_boot*, orr_comm** out);
  /* Collective over `parent`: ranks with equal color >= 0 form one communicator, ordered by key
   * then rank; color -1 gets *out = NULL. [communication thread] */
  orr_status* (*split)(orr_comm* parent, int32_t color, int32_t key, orr_comm** out);
  /* This process's rank in the communicator, and how many there are; fixed. [any thread] */
  int32_t (*rank)(orr_comm*);
  int32_t (*world_size)(orr_comm*);

  /* Posts n operations; n > 1 is a group whose sends and receives start together. All ranks post
   * the same operations in the same order. *out is one handle for the group. [communication
   * thread] */
  orr_status* (*post)(orr_comm*, const orr_coll* ops, int32_t n, orr_work** out);
  /* Completes the work (progress may be made only here) and frees the handle. [communication
   * thread] */
  orr_status* (*wait)(orr_comm*, orr_work*);

  /* Memory that this communicator's ranks can use in place (tier COMM), zeroed. Collective; same
   * bytes on all ranks. Backends without REGISTERED or DEVICE_MEMORY return ORR_UNIMPLEMENTED.
   * [main thread] */
  orr_status* (*allocate)(orr_comm*, uint64_t bytes, orr_memory** out);
  /* Gives it back. Collective. REQUIRES: no work on it is pending. [main thread] */
  void (*free)(orr_comm*, orr_memory*);

  /* Poisons the communicator here and, where possible, on its peers: pending and later calls end
   * with ORR_RETRY and `reason`. [any thread] */
  void (*abort)(orr_comm*, const char* reason);
  /* NULL while healthy; else a new status naming the culprit. [any thread] */
  orr_status* (*async_error)(orr_comm*);
  /* Ends the communicator, healthy or not. REQUIRES: no work pending, and its children
   * and memory are gone. Local, never waits. [main thread] */
  void (*destroy)(orr_comm*);

  /* Bytes this rank has sent since creation, by the operation's own definition of its traffic
   * (sdk/traffic.hpp). [any thread] */
  uint64_t (*bytes_sent)(orr_comm*);

  /* One memory for all ranks of this communicator (tier COMM), zeroed: what one rank writes before
   * a barrier, every rank reads behind it, at the same offset. Collective; same bytes on all ranks;
   * given back by `free`. Backends without SHARED, and communicators whose ranks are not on one
   * host, return ORR_UNIMPLEMENTED on all ranks. [main thread] */
  orr_status* (*allocate_shared)(orr_comm*, uint64_t bytes, orr_memory** out);
} orr_comm_api;

#ifdef __cplusplus
}
#endif
#endif
