// SPDX-License-Identifier: Apache-2.0
//
// What one op family gives to the plugin's table, and the checks that all of them share. A family
// is stateless: the prepared kernel is a copy of the op, and `run` reads shapes from it.
#pragma once

#include <orrery/sdk/op_checks.hpp>
#include <string>

#include "element.h"

namespace reference {

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

// Families by file.
extern const Family pointwise_family, matmul_family, reduce_family, argmax_family, topk_family,
    softmax_family, softmax_grad_family, layernorm_family, layernorm_grad_family, rmsnorm_family,
    rmsnorm_grad_family, norm_param_grad_family, attention_family, attention_grad_family,
    cross_entropy_family, cross_entropy_grad_family, gather_family, scatter_add_family,
    slice_at_family, update_slice_family, iota_family, categorical_family, matmul_pointwise_family,
    fold_family, norm_grad_family, reduce_each_family, pointwise_next_family, gather_matmul_family,
    scatter_matmul_family;

}  // namespace reference
