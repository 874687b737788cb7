// SPDX-License-Identifier: Apache-2.0
//
// Helpers for strategies whose ranks share the batch: the parameters of a program, and the traffic
// of sums over the batch and of exchanges in which each rank owns a piece.
#pragma once

#include <orrery/comm.h>
#include <orrery/strategy.h>

#include <algorithm>
#include <string>
#include <vector>

#include <orrery/sdk/plugin.hpp>

namespace orr {

struct Param {
  int32_t value;
  std::string name;
  int64_t bytes;
};

// All parameters, in the natural order of names.
inline std::vector<Param> params_of(orr_program* program, const orr_edit* edit) {
  std::vector<Param> params;
  check(edit->each(program, 1u << ORR_ROLE_PARAM, &params,
                   [](void* arg, int32_t value, const orr_value_info* info) {
                     int64_t bytes = elements(info->type) * orr_dtype_bytes(info->type.dtype);
                     static_cast<std::vector<Param>*>(arg)->push_back({value, info->name, bytes});
                     return static_cast<orr_status*>(nullptr);
                   }));
  return params;
}

// The bytes that a rank sends in a sum that all ranks get: its tree nodes to the owners of the
// other shares, and its finished share to all others. Shares are even, cut at multiples of 16
// elements.
inline uint64_t bytes_of_sum(const orr_predict_query& q) {
  if (q.axis_size <= 1 || q.reduced_elements == 0) return 0;
  uint64_t n = q.reduced_elements, p = static_cast<uint64_t>(q.axis_size),
           r = static_cast<uint64_t>(q.rank);
  auto cut = [&](uint64_t rank) { return std::min(n, (((n * rank + p - 1) / p) + 15) / 16 * 16); };
  uint64_t share = cut(r + 1) - cut(r);
  return (static_cast<uint64_t>(q.nodes) * (n - share) + share * (p - 1)) *
         static_cast<uint64_t>(q.element_bytes);
}

// The bytes that a rank sends in an exchange in which each rank owns a piece: of gradients, its
// tree nodes of the pieces of others; in a gather, its own piece to all others. 0 for other
// exchanges.
inline uint64_t bytes_of_pieces(const orr_predict_query& q) {
  if (!q.counts) return 0;
  uint64_t all = 0, own = static_cast<uint64_t>(q.counts[q.rank]),
           peers = static_cast<uint64_t>(q.axis_size - 1);
  for (int32_t r = 0; r < q.axis_size; ++r) all += static_cast<uint64_t>(q.counts[r]);
  uint64_t elements =
      q.op == ORR_COLL_ALL_GATHER ? own * peers : static_cast<uint64_t>(q.nodes) * (all - own);
  return elements * static_cast<uint64_t>(q.element_bytes);
}

}  // namespace orr
