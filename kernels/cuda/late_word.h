// SPDX-License-Identifier: Apache-2.0
//
// The error word, by which a kernel reports bad data. It lies in pinned host memory that kernels
// can write. The first report stays until event_sync has returned it. nvcc and the host's compiler
// both read this header.
#pragma once

namespace orr_cuda {

struct LateWord {
  unsigned state;  // 0: nothing, 1: being written, 2: complete
  unsigned op;     // the id of the prepared op that reports
  long long row;
  long long value;
};

// Where a kernel reports, and as which op; the host's LateSource makes it.
struct LateArgs {
  LateWord* word;
  unsigned op;
};

#if defined(__CUDACC__) || defined(ORR_EMULATED)
// Reports once for all threads; later reports are dropped.
__device__ inline void report_late(const LateArgs& to, long long row, long long value) {
  if (atomicCAS(&to.word->state, 0u, 1u) != 0u) return;
  to.word->op = to.op;
  to.word->row = row;
  to.word->value = value;
  __threadfence_system();
  atomicExch(&to.word->state, 2u);
}
#endif

}  // namespace orr_cuda
