// SPDX-License-Identifier: Apache-2.0
//
// The ops of the cpu plugin, one line each. A new op is a line here, a `supports` below (or one of
// the shared ones) and a per-ISA `make_<kind>`.
#include <cstring>

#include "attention_plan.h"
#include "fold.h"
#include "grouped_plan.h"
#include "kernel.h"
#include "matmul_plan.h"
#include "pointwise.h"
#include "pointwise_sum_plan.h"
#include "reduce.h"

#define ORR_DECLARE(kind)             \
  namespace orr_cpu::avx2 {           \
  Kernel* make_##kind(const orr_op&); \
  }                                   \
  namespace orr_cpu::avx512 {         \
  Kernel* make_##kind(const orr_op&); \
  }                                   \
  namespace orr_cpu::neon {           \
  Kernel* make_##kind(const orr_op&); \
  }

ORR_DECLARE(argmax)
ORR_DECLARE(attention)
ORR_DECLARE(attention_grad)
ORR_DECLARE(categorical)
ORR_DECLARE(cross_entropy)
ORR_DECLARE(cross_entropy_grad)
ORR_DECLARE(fold)
ORR_DECLARE(gather)
ORR_DECLARE(gather_matmul)
ORR_DECLARE(iota)
ORR_DECLARE(layernorm)
ORR_DECLARE(layernorm_grad)
ORR_DECLARE(matmul)
ORR_DECLARE(norm_param_grad)
ORR_DECLARE(pointwise)
ORR_DECLARE(pointwise_sum)
ORR_DECLARE(reduce)
ORR_DECLARE(rmsnorm)
ORR_DECLARE(rmsnorm_grad)
ORR_DECLARE(scatter_add)
ORR_DECLARE(scatter_matmul)
ORR_DECLARE(slice_at)
ORR_DECLARE(softmax)
ORR_DECLARE(softmax_grad)
ORR_DECLARE(topk)
ORR_DECLARE(update_slice)

namespace orr_cpu {

ReduceFn reduce_fn(const orr_op& op) {
  const char* names[] = {"sum", "sumsq", "max", "min"};
  for (int i = 0; i < 4; ++i)
    if (!std::strcmp(names[i], attr_text(op, "fn", ""))) return ReduceFn(i);
  return ReduceFn::unknown;
}

int64_t reduce_blocks(int64_t n) { return (n + ORR_SUM_BLOCK - 1) / ORR_SUM_BLOCK; }

namespace {

constexpr const char* kNumerics = "lanes16/1";  // the order of ops.h and our own exp and log

bool is_real(int32_t dtype) {
  return dtype == ORR_F32 || dtype == ORR_BF16 || dtype == ORR_F16 || dtype == ORR_F64;
}

// Takes the op if tensor `input` is of a type that the row kernels know.
template <int input, int inplace>
void real_op(const orr_op& op, orr_support& out) {
  if (!is_real(op.in[input].dtype)) return refuse(out, "only f32, bf16, f16 and f64");
  accept(out, kNumerics);
  out.inplace = inplace;
}

bool has_neighbours(const orr_tensor& x) { return x.dims[1] == 1 || x.strides[1] == 1; }

// Takes logits, which are tensor `logits`, and their gradient in rows that lie apart.
template <int logits, int inplace>
void loss(const orr_op& op, orr_support& out) {
  const int slope = logits == 1 ? 0 : op.n_out == 3 ? 2 : -1;  // the output
  if (!has_neighbours(op.in[logits]) || (slope >= 0 && !has_neighbours(op.out[slope])))
    return refuse(out, "the last stride of logits is 1");
  real_op<logits, inplace>(op, out);
  out.strided_in = 1u << logits;
  if (slope >= 0) out.strided_out = 1u << slope;
}

// Takes sums of tensor `input`, stored in any dtype that sums can be stored in.
template <int input, int inplace>
void real_sum(const orr_op& op, orr_support& out) {
  if (!sums_into(op.in[input].dtype, op.out[0].dtype))
    return refuse(out, "no sums of that type from such terms");
  real_op<input, inplace>(op, out);
}

// Takes any dtype: nothing is computed.
template <int inplace>
void moves(const orr_op&, orr_support& out) {
  accept(out, "exact");
  out.inplace = inplace;
}

void reduces(const orr_op& op, orr_support& out) {
  if (reduce_fn(op) == ReduceFn::unknown) return refuse(out, "fn is not sum, sumsq, max or min");
  if (is_eight_bits(op.in[0].dtype)) return refuse(out, "x must not be of eight bits");
  if (is_real(op.in[0].dtype) && !sums_into(op.in[0].dtype, op.out[0].dtype))
    return refuse(out, "no result of that type from such terms");
  accept(out, kNumerics);
}

uint64_t reduce_workspace(const orr_op& op) {
  const orr_tensor& x = op.in[0];
  int64_t leaves = attr_int(op, "leaf_n", 1), blocks = reduce_blocks(x.dims[1] / leaves);
  if (x.dims[2] != 1 || blocks <= 1) return 0;
  return uint64_t(x.dims[0] * leaves * blocks) * sizeof(double);
}

void scatter_supports(const orr_op& op, orr_support& out) {
  op.n_in == 3 ? real_sum<1, 3>(op, out) : real_sum<1, 0>(op, out);
}

uint64_t scatter_workspace(const orr_op& op) {
  return uint64_t(attr_int(op, "rows", 0) + 1 + op.in[0].dims[0]) * sizeof(int64_t);
}

}  // namespace

#ifdef ORR_BUILT_AVX2
#define ORR_AVX2(kind) avx2::make_##kind
#else
#define ORR_AVX2(kind) nullptr
#endif
#ifdef ORR_BUILT_AVX512
#define ORR_AVX512(kind) avx512::make_##kind
#else
#define ORR_AVX512(kind) nullptr
#endif
#ifdef ORR_BUILT_NEON
#define ORR_NEON(kind) neon::make_##kind
#else
#define ORR_NEON(kind) nullptr
#endif
#define ORR_MAKERS(kind) \
  { ORR_AVX2(kind), ORR_AVX512(kind), ORR_NEON(kind) }
#define ORR_ROW(kind, supports, workspace) \
  { #kind, supports, workspace, ORR_MAKERS(kind) }

const Op op_table[] = {
    ORR_ROW(argmax, (real_op<0, 0>), nullptr),
    ORR_ROW(attention, attention_supports, attention_workspace),
    ORR_ROW(attention_grad, attention_grad_supports, attention_grad_workspace),
    ORR_ROW(categorical, (real_op<0, 0>), nullptr),
    ORR_ROW(cross_entropy, (loss<0, 0>), nullptr),
    ORR_ROW(cross_entropy_grad, (loss<1, 2>), nullptr),
    ORR_ROW(fold, fold_supports, nullptr),
    ORR_ROW(gather, moves<0>, nullptr),
    ORR_ROW(gather_matmul, gather_matmul_supports, gather_matmul_workspace),
    ORR_ROW(iota, moves<0>, nullptr),
    ORR_ROW(layernorm, (real_op<0, 1>), nullptr),
    ORR_ROW(layernorm_grad, (real_op<0, 1>), nullptr),
    ORR_ROW(matmul, matmul_supports, matmul_workspace),
    ORR_ROW(norm_param_grad, (real_sum<0, 0>), nullptr),
    ORR_ROW(pointwise, pointwise::supports, nullptr),
    ORR_ROW(pointwise_sum, pointwise_sum_supports, pointwise_sum_workspace),
    ORR_ROW(reduce, reduces, reduce_workspace),
    ORR_ROW(rmsnorm, (real_op<0, 1>), nullptr),
    ORR_ROW(rmsnorm_grad, (real_op<0, 1>), nullptr),
    ORR_ROW(scatter_add, scatter_supports, scatter_workspace),
    ORR_ROW(scatter_matmul, scatter_matmul_supports, scatter_matmul_workspace),
    ORR_ROW(slice_at, moves<0>, nullptr),
    ORR_ROW(softmax, (real_op<0, 1>), nullptr),
    ORR_ROW(softmax_grad, (real_op<0, 1>), nullptr),
    ORR_ROW(topk, (real_op<0, 0>), nullptr),
    ORR_ROW(update_slice, moves<1>, nullptr),
};
const int op_count = sizeof op_table / sizeof op_table[0];

}  // namespace orr_cpu
