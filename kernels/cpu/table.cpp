// SPDX-License-Identifier: Apache-2.0
//
// The ops of the cpu plugin, one line each. A new op is a line here, a `supports` below (or one of
// the shared ones) and a per-ISA `make_<kind>`.
#include "attention_plan.h"
#include "kernel.h"
#include "matmul_plan.h"

#define ORR_DECLARE(kind)                              \
  namespace orr_cpu::avx2 {                            \
  Kernel* make_##kind(const orr_op&);                  \
  }                                                    \
  namespace orr_cpu::avx512 {                          \
  Kernel* make_##kind(const orr_op&);                  \
  }

ORR_DECLARE(attention)
ORR_DECLARE(attention_grad)
ORR_DECLARE(matmul)
ORR_DECLARE(softmax)
ORR_DECLARE(softmax_grad)

namespace orr_cpu {
namespace {

// "" if the first input is of a type that the row kernels know, else why not.
bool real(const orr_op& op, orr_support& out) {
  int32_t dtype = op.in[0].dtype;
  if (dtype == ORR_F32 || dtype == ORR_BF16 || dtype == ORR_F64) return true;
  refuse(out, "only f32, bf16 and f64");
  return false;
}

void supports_in_place(const orr_op& op, orr_support& out) {
  if (!real(op, out)) return;
  accept(out, "lanes16/1");
  out.inplace = 1;
}

}  // namespace

#define ORR_ROW(kind, supports, workspace) \
  {#kind, supports, workspace, avx2::make_##kind, avx512::make_##kind}

const Op op_table[] = {
    ORR_ROW(attention, attention_supports, attention_workspace),
    ORR_ROW(attention_grad, attention_grad_supports, attention_grad_workspace),
    ORR_ROW(matmul, matmul_supports, matmul_workspace),
    ORR_ROW(softmax, supports_in_place, nullptr),
    ORR_ROW(softmax_grad, supports_in_place, nullptr),
};
const int op_count = sizeof op_table / sizeof op_table[0];

}  // namespace orr_cpu
