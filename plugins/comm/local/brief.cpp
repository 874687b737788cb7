// SPDX-License-Identifier: Apache-2.0
//
// Operations of a few bytes: these travel in the notice of the operation, and take no memory from
// the heap.
#include <algorithm>
#include <cstring>
#include <orrery/sdk/descriptor.hpp>
#include <orrery/sdk/plugin.hpp>
#include <orrery/sdk/traffic.hpp>

#include "comm.h"

namespace local {

// The answer is the same on all ranks that post the same operation.
bool Comm::is_brief(const orr_coll& c, int ranks) {
  if (c.op == ORR_COLL_BARRIER) return true;
  if (ranks == 1) return false;  // one operand is copied, not folded
  int64_t n = 0;
  switch (c.op) {
    case ORR_COLL_BROADCAST:
    case ORR_COLL_REDUCE:
    case ORR_COLL_ALL_REDUCE: n = c.count; break;
    case ORR_COLL_REDUCE_SCATTER: n = orr::traffic::sum(c.counts, ranks); break;
    case ORR_COLL_ALL_GATHER: n = *std::max_element(c.counts, c.counts + ranks); break;
    default: return false;
  }
  return n * orr_dtype_bytes(c.dtype) <= static_cast<int64_t>(sizeof Notice::data);
}

void Comm::brief(const orr_coll& c) {
  const int64_t unit = orr_dtype_bytes(c.dtype);
  const int64_t bytes = orr::traffic::extent(c, rank_, size_).in * unit;
  meet(c, bytes > 0 ? orr::data<char>(c.send) : nullptr, static_cast<uint64_t>(bytes));
  if (orr::adds(c.op)) return fold_brief(c);
  if (c.op == ORR_COLL_BARRIER || !c.recv.memory) return;
  char* recv = orr::data<char>(c.recv);
  const bool gathers = c.op == ORR_COLL_ALL_GATHER;
  for (int r = gathers ? 0 : c.root_or_peer, end = gathers ? size_ : r + 1; r < end; ++r) {
    const int64_t n = (gathers ? c.counts[r] : c.count) * unit;
    std::memcpy(recv, notice(r).data, n);
    recv += n;
  }
}

// In rank order, like every fold.
void Comm::fold_brief(const orr_coll& c) {
  const bool scatters = c.op == ORR_COLL_REDUCE_SCATTER;
  const int64_t n = scatters ? c.counts[rank_] : c.count;
  if (n == 0 || (c.op == ORR_COLL_REDUCE && rank_ != c.root_or_peer)) return;
  const int64_t from = scatters ? orr::traffic::sum(c.counts, rank_) * orr_dtype_bytes(c.dtype) : 0;
  const void* in[max_ranks];
  for (int r = 0; r < size_; ++r) in[r] = notice(r).data + from;
  orr::fold_for(c.dtype, c.redop)(orr::data<char>(c.recv), in, size_, n);
}

}  // namespace local
