// SPDX-License-Identifier: Apache-2.0
#include "grouped_plan.h"

#include "kernel.h"
#include "matmul_plan.h"

namespace orr_cpu {
namespace {

int64_t bytes_of(const orr_tensor& t) {
  int64_t bytes = orr_dtype_bytes(t.dtype);
  for (int32_t i = 0; i < t.rank; ++i) bytes *= t.dims[i];
  return grouped_bytes(bytes);
}

// Where each matrix's rows begin, their order, and the line on which all begins.
int64_t sort_bytes(int64_t matrices, int64_t rows) {
  return 64 + grouped_bytes((matrices + 1 + rows) * int64_t(sizeof(int64_t)));
}

bool is_product(int32_t from, int32_t to) {
  const bool real = from == ORR_F32 || from == ORR_BF16 || from == ORR_F16 || from == ORR_F64;
  return real && sums_into(from, to);
}

void answer(bool takes, int32_t from, int32_t to, orr_support& out) {
  if (!takes) return refuse(out, "only f32, bf16, f16 and f64, and sums of these");
  accept(out, from == ORR_BF16 && to == ORR_BF16 ? "matmul/k256-pairs" : "matmul/k256");
}

}  // namespace

void gather_matmul_supports(const orr_op& op, orr_support& out) {
  const int32_t dtype = op.in[0].dtype;
  if (attr_int(op, "leaf_n", 1) != 1) return refuse(out, "no leaves here");
  answer(is_product(dtype, dtype), dtype, dtype, out);
  out.strided_in = 2;
}

uint64_t gather_matmul_workspace(const orr_op& op) {
  return uint64_t(sort_bytes(op.in[1].dims[0], op.in[0].dims[0]) + bytes_of(op.in[0]) +
                  bytes_of(op.out[0]));
}

void scatter_matmul_supports(const orr_op& op, orr_support& out) {
  const int32_t from = op.in[0].dtype, to = op.out[0].dtype;
  answer(is_product(from, to), from, to, out);
}

// Behind the rows lie the sums of finished subtrees of leaves, one a level.
uint64_t scatter_matmul_workspace(const orr_op& op) {
  int64_t levels = 0;
  for (int64_t leaves = attr_int(op, "leaf_n", 1); leaves > 1; leaves = (leaves + 1) / 2) ++levels;
  const int64_t matrix = op.in[0].dims[1] * op.in[1].dims[1] * orr_dtype_bytes(op.out[0].dtype);
  return uint64_t(sort_bytes(attr_int(op, "matrices", 0), op.in[0].dims[0]) + bytes_of(op.in[0]) +
                  bytes_of(op.in[1]) + levels * matrix);
}

}  // namespace orr_cpu
