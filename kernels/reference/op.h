// SPDX-License-Identifier: Apache-2.0
//
// What one op family gives to the plugin's table, and the checks that all of them share. A family
// is stateless: the prepared kernel is a copy of the op, and `run` reads shapes from it.
#pragma once

#include <orrery/kernel.h>
#include <orrery/ops.h>
#include <orrery/sdk/plugin.hpp>

#include <initializer_list>
#include <stdexcept>
#include <string>

#include "element.h"

namespace reference {

// Why an op is not supported; becomes orr_support.reason.
struct Unsupported : std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline void require(bool ok, const std::string& reason) {
  if (!ok) throw Unsupported(reason);
}

// One launch.
struct Call {
  const orr_op& op;
  const orr_buffer* in;
  const orr_buffer* out;
  char* workspace;

  template <class T>
  const T* input(int i) const {
    return orr::data<const T>(in[i]);
  }
  template <class T>
  T* output(int i) const {
    return orr::data<T>(out[i]);
  }
  // An index or scalar input of dtype i32 or i64.
  int64_t integer(int i, int64_t element = 0) const {
    return op.in[i].dtype == ORR_I32 ? input<int32_t>(i)[element] : input<int64_t>(i)[element];
  }
};

struct Family {
  const char* kind;
  const char* numerics;
  void (*check)(const orr_op&);          // throws Unsupported
  void (*run)(const Call&);              // throws orr::Error for bad data
  uint64_t (*workspace)(const orr_op&);  // bytes; null: none
  uint32_t strided_in, strided_out;
  int32_t (*inplace)(const orr_op&);  // see orr_support; null: never
};

inline void require_counts(const orr_op& op, int n_in, int n_out) {
  require(op.n_in == n_in && op.n_out == n_out,
          std::to_string(n_in) + " inputs and " + std::to_string(n_out) + " outputs are needed");
}

inline void require_dtype(const orr_tensor& t, int32_t dtype, const char* name) {
  require(t.dtype == dtype,
          std::string("the dtype of ") + name + " does not fit the first input's");
}

// A tensor that holds sums of elements of dtype `summed`.
inline void require_sum(const orr_tensor& t, int32_t summed, const char* name) {
  require(sums_into(summed, t.dtype),
          std::string("sums of the first input's dtype cannot be stored in that of ") + name);
}

inline void require_shape(const orr_tensor& t, std::initializer_list<int64_t> dims,
                          const char* name) {
  bool ok = t.rank == int32_t(dims.size());
  int i = 0;
  for (int64_t d : dims) ok = ok && t.dims[i++] == d;
  require(ok, std::string("the shape of ") + name + " does not fit the other tensors");
}

inline void require_rank(const orr_tensor& t, int rank, const char* name) {
  require(t.rank == rank, std::string(name) + " must have rank " + std::to_string(rank));
}

inline void require_real(const orr_tensor& t, const char* name) {
  require(is_real(t.dtype), std::string(name) + " must be f32, f64, bf16 or f16");
}

inline void require_index(const orr_tensor& t, const char* name) {
  require(is_index(t.dtype), std::string(name) + " must be i32 or i64");
}

inline void require_scalar(const orr_tensor& t, const char* name) {
  require(orr::elements(t) == 1 && t.dtype == ORR_I64,
          std::string(name) + " must be an i64 scalar");
}

// Families by file.
extern const Family pointwise_family, matmul_family, reduce_family, argmax_family, topk_family,
    softmax_family, softmax_grad_family, layernorm_family, layernorm_grad_family, rmsnorm_family,
    rmsnorm_grad_family, norm_param_grad_family, attention_family, attention_grad_family,
    cross_entropy_family, cross_entropy_grad_family, gather_family, scatter_add_family,
    slice_at_family, update_slice_family, iota_family, categorical_family, matmul_pointwise_family,
    fold_family, norm_grad_family, reduce_each_family, pointwise_next_family;

}  // namespace reference
