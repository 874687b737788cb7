// SPDX-License-Identifier: Apache-2.0
//
// Checks an operation of comm.h before any byte moves.
#pragma once

#include <orrery/comm.h>

#include <algorithm>
#include <cstdint>
#include <orrery/sdk/fold.hpp>
#include <orrery/sdk/traffic.hpp>
#include <string>
#include <utility>
#include <vector>

namespace orr {

inline const char* dtype_name(int32_t dtype) {
  static const char* const names[] = {"bytes", "f32", "f64", "bf16", "f16",
                                      "i32",   "i64", "u8",  "bool"};
  return dtype >= 0 && dtype <= ORR_BOOL ? names[dtype] : "unknown elements";
}

inline bool has_root(int32_t op) { return op == ORR_COLL_BROADCAST || op == ORR_COLL_REDUCE; }
inline bool is_paired(int32_t op) { return op == ORR_COLL_SEND || op == ORR_COLL_RECV; }
inline bool adds(int32_t op) {
  return traffic::is_tree(op) || op == ORR_COLL_ALL_REDUCE || op == ORR_COLL_REDUCE ||
         op == ORR_COLL_REDUCE_SCATTER;
}
inline bool lies_on_device(const orr_buffer& b) {
  return b.memory && b.memory->tier == ORR_TIER_DEVICE;
}

namespace descriptor {

inline std::string missing_bytes(const orr_coll& c, const char* which, const orr_buffer& b,
                                 int64_t elements, bool device) {
  const uint64_t need = static_cast<uint64_t>(elements * orr_dtype_bytes(c.dtype));
  if (need == 0) return "";
  const bool reachable = b.memory && (b.memory->host || (device && lies_on_device(b)));
  if (!reachable) return std::string(which) + " has no host memory";
  if (b.bytes >= need) return "";
  return std::string(which) + " holds " + std::to_string(b.bytes) + " bytes and needs " +
         std::to_string(need);
}

// Whether no element is in the slices of two ranks: a rank writes its slice while others read.
inline bool slices_are_apart(const orr_coll& c, int ranks) {
  std::vector<std::pair<int64_t, int64_t>> slices;
  for (int r = 0; r < ranks; ++r)
    if (c.counts[r] > 0) slices.push_back({c.recv_counts[r], c.recv_counts[r] + c.counts[r]});
  std::sort(slices.begin(), slices.end());
  int64_t end = 0;
  for (auto& [first, last] : slices) {
    if (first < end || last > c.count) return false;
    end = last;
  }
  return true;
}

inline std::string why_not(const orr_coll& c, int rank, int ranks, bool any_source, bool device) {
  if (orr_dtype_bytes(c.dtype) == 0) return "unknown dtype " + std::to_string(c.dtype);
  const bool any = any_source && c.op == ORR_COLL_RECV && c.root_or_peer == -1;
  if ((has_root(c.op) || is_paired(c.op)) && !any &&
      (c.root_or_peer < 0 || c.root_or_peer >= ranks))
    return "no rank " + std::to_string(c.root_or_peer) + " among " + std::to_string(ranks);
  const bool tree = traffic::is_tree(c.op);
  if (adds(c.op) && !fold_for(c.dtype, tree ? int32_t{ORR_RED_SUM} : c.redop))
    return "cannot reduce " + std::string(dtype_name(c.dtype)) + " with redop " +
           std::to_string(c.redop);
  if (tree && (!c.leaf_first || c.leaf_first[ranks] < 1)) return "there are no leaves";
  if (c.op == ORR_COLL_TREE_REDUCE_SCATTER && !slices_are_apart(c, ranks))
    return "its slices overlap or pass its end";
  const traffic::Extent elements = traffic::extent(c, rank, ranks);
  const std::string why = missing_bytes(c, "send", c.send, elements.in, device);
  return why.empty() ? missing_bytes(c, "recv", c.recv, elements.out, device) : why;
}

}  // namespace descriptor

// Why this rank cannot run the operation, such as "all_reduce 'bucket 3': no rank 7 among 4"; "" if
// it can. `any_source`: a receive may name peer -1. `device`: buffers may lie in device memory.
// REQUIRES: c.op is an operation of comm.h.
inline std::string refusal(const orr_coll& c, int rank, int ranks, bool any_source,
                           bool device = false) {
  const std::string why =
      c.op == ORR_COLL_BARRIER ? "" : descriptor::why_not(c, rank, ranks, any_source, device);
  if (why.empty()) return "";
  return std::string(traffic::name(c.op)) + (c.name ? std::string(" '") + c.name + "'" : "") +
         ": " + why;
}

}  // namespace orr
