// SPDX-License-Identifier: Apache-2.0
//
// The error word: how a kernel tells of bad data. Pinned host memory that kernels reach; the first
// report stays until event_sync has handed it on. Read by nvcc and by the host's compiler.
#pragma once

namespace orr_cuda {

struct LateWord {
  unsigned state;  // 0: nothing, 1: being written, 2: complete
  unsigned op;     // which prepared op reports
  long long row;
  long long value;
};

#if defined(__CUDACC__) || defined(ORR_EMULATED)
// Reports once for all threads; later reports are dropped. `op` and `word` come from the host's
// LateSource.
__device__ inline void report_late(LateWord* word, unsigned op, long long row, long long value) {
  if (atomicCAS(&word->state, 0u, 1u) != 0u) return;
  word->op = op;
  word->row = row;
  word->value = value;
  __threadfence_system();
  atomicExch(&word->state, 2u);
}
#endif

}  // namespace orr_cuda
