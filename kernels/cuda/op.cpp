// SPDX-License-Identifier: Apache-2.0
#include "op.h"

namespace orr_cuda {

bool is_contiguous(const orr_tensor& t) {
  int64_t expected = 1;
  for (int i = t.rank - 1; i >= 0; --i) {
    if (t.dims[i] == 0) return true;
    if (t.dims[i] != 1 && t.strides[i] != expected) return false;
    expected *= t.dims[i];
  }
  return true;
}

const char* dtype_name(int32_t dtype) {
  static const char* const names[] = {"?", "f32", "f64", "bf16", "f16", "i32", "i64", "u8", "bool"};
  return names[orr_dtype_bytes(dtype) ? dtype : 0];
}

void require_counts(const orr_op& op, int n_in, int n_out) {
  require(op.n_in == n_in && op.n_out == n_out,
          std::to_string(n_in) + " inputs and " + std::to_string(n_out) + " outputs are needed");
}

void require_rank(const orr_tensor& t, int rank, const char* name) {
  require(t.rank == rank, std::string(name) + " must have rank " + std::to_string(rank));
}

void require_shape(const orr_tensor& t, std::initializer_list<int64_t> dims, const char* name) {
  bool ok = t.rank == static_cast<int32_t>(dims.size());
  int i = 0;
  for (int64_t d : dims) ok = ok && t.dims[i++] == d;
  require(ok, std::string("the shape of ") + name + " does not fit the other tensors");
}

void require_dtype(const orr_tensor& t, int32_t dtype, const char* name) {
  require(t.dtype == dtype,
          std::string("the dtype of ") + name + " does not fit the other tensors");
}

void require_real(const orr_tensor& t, const char* name) {
  require(is_real(t.dtype), std::string(name) + " must be f32, f64, bf16 or f16");
}

void require_index(const orr_tensor& t, const char* name) {
  require(is_index(t.dtype), std::string(name) + " must be i32 or i64");
}

Leaves::Leaves(const orr_op& op)
    : lo(orr::attr_int(op, "leaf_lo", 0)),
      n(orr::attr_int(op, "leaf_n", 1)),
      total(orr::attr_int(op, "leaf_total", 1)) {}

void require_leaves(const orr_op& op, int64_t length) {
  const Leaves leaves(op);
  require(leaves.lo >= 0 && leaves.n >= 1 && leaves.lo + leaves.n <= leaves.total,
          "leaf_lo, leaf_n do not lie in [0, leaf_total)");
  require(length % leaves.n == 0, "leaf_n does not divide the summed dim");
}

}  // namespace orr_cuda
