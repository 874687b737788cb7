// SPDX-License-Identifier: Apache-2.0
//
// Defines the traffic of operations: a rank sends the bytes of its data that other ranks read.
// Backends count by these formulas, however the bytes travel, so that a plan predicts the count
// exactly. With P ranks, N elements and
//
//   share r = [b(r), b(r+1)),  b(r) = min(N, roundup16(ceil(N * r / P)))
//
// rank r sends, in elements:
//
//   tree_all_reduce  k_r * (N - share_r) + share_r * (P - 1)      k_r: nodes that it exports
//   tree_reduce_scatter  k_r * (sum(counts) - counts[r])
//   all_reduce       that of the tree with k_r = 1
//   reduce           N - share_r, + share_r unless it is the root
//   reduce_scatter   sum(counts) - counts[r]
//   all_gather       counts[r] * (P - 1)
//   broadcast        N * (P - 1) at the root, else 0
//   all_to_all       sum(counts) - counts[r]
//   send             N, or 0 to itself
#pragma once

#include <orrery/comm.h>
#include <orrery/ops.h>

#include <algorithm>

namespace orr::traffic {

// The name of an operation in messages and plans.
inline const char* name(int32_t op) {
  constexpr const char* names[] = {
      "nothing",    "barrier", "broadcast", "all_reduce", "reduce_scatter",  "all_gather",
      "all_to_all", "send",    "recv",      "reduce",     "tree_all_reduce", "tree_reduce_scatter"};
  return op > 0 && op <= ORR_COLL_TREE_REDUCE_SCATTER ? names[op] : "an unknown operation";
}

inline bool is_tree(int32_t op) {
  return op == ORR_COLL_TREE_ALL_REDUCE || op == ORR_COLL_TREE_REDUCE_SCATTER;
}

// The first element b(r) of rank r's share of n elements; b(P) = n. Shares begin on cache lines.
inline int64_t share_begin(int64_t n, int64_t r, int64_t ranks) {
  const int64_t even = n / ranks * r + (n % ranks * r + ranks - 1) / ranks;
  return std::min(n, (even + 15) / 16 * 16);
}

inline int64_t sum(const int64_t* counts, int ranks) {
  int64_t total = 0;
  for (int r = 0; r < ranks; ++r) total += counts[r];
  return total;
}

inline int64_t nodes(const orr_coll& c, int rank, int ranks) {
  if (!is_tree(c.op)) return 1;
  return orr_tree_nodes(c.leaf_first[rank], c.leaf_first[rank + 1], c.leaf_first[ranks]);
}

// The lengths of `send` and `recv` of `rank`, in elements.
struct Extent {
  int64_t in = 0, out = 0;
};
inline Extent extent(const orr_coll& c, int rank, int ranks) {
  const bool root = c.root_or_peer == rank;
  switch (c.op) {
    case ORR_COLL_BARRIER: return {};
    case ORR_COLL_BROADCAST: return {root ? c.count : 0, root ? 0 : c.count};
    case ORR_COLL_REDUCE: return {c.count, root ? c.count : 0};
    case ORR_COLL_REDUCE_SCATTER: return {sum(c.counts, ranks), c.counts[rank]};
    case ORR_COLL_ALL_GATHER: return {c.counts[rank], sum(c.counts, ranks)};
    case ORR_COLL_ALL_TO_ALL: return {sum(c.counts, ranks), sum(c.recv_counts, ranks)};
    case ORR_COLL_SEND: return {c.count, 0};
    case ORR_COLL_RECV: return {0, c.count};
    case ORR_COLL_TREE_ALL_REDUCE: return {c.count * nodes(c, rank, ranks), c.count};
    case ORR_COLL_TREE_REDUCE_SCATTER: return {c.count * nodes(c, rank, ranks), c.counts[rank]};
    default: return {c.count, c.count};
  }
}

// The bytes that `rank` sends in one operation. `total` is the sum of c.counts, where the operation
// has counts: who asks for many ranks adds them up once.
inline uint64_t bytes_sent(const orr_coll& c, int rank, int ranks, int64_t total) {
  const int64_t n = c.count, peers = ranks - 1;
  const auto share = [&] {  // called only if needed: its divisions would slow down short messages
    return share_begin(n, rank + 1, ranks) - share_begin(n, rank, ranks);
  };
  int64_t elements = 0;
  switch (c.op) {
    case ORR_COLL_TREE_ALL_REDUCE:
    case ORR_COLL_ALL_REDUCE:
      elements = nodes(c, rank, ranks) * (n - share()) + share() * peers;
      break;
    case ORR_COLL_TREE_REDUCE_SCATTER:
      elements = nodes(c, rank, ranks) * (total - c.counts[rank]);
      break;
    case ORR_COLL_REDUCE: elements = n - (rank == c.root_or_peer ? share() : 0); break;
    case ORR_COLL_REDUCE_SCATTER:
    case ORR_COLL_ALL_TO_ALL: elements = total - c.counts[rank]; break;
    case ORR_COLL_ALL_GATHER: elements = c.counts[rank] * peers; break;
    case ORR_COLL_BROADCAST: elements = rank == c.root_or_peer ? n * peers : 0; break;
    case ORR_COLL_SEND: elements = rank == c.root_or_peer ? 0 : n; break;
    default: break;
  }
  return static_cast<uint64_t>(elements * orr_dtype_bytes(c.dtype));
}
inline uint64_t bytes_sent(const orr_coll& c, int rank, int ranks) {
  return bytes_sent(c, rank, ranks, c.counts ? sum(c.counts, ranks) : 0);
}

}  // namespace orr::traffic
