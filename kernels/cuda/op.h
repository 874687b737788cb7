// SPDX-License-Identifier: Apache-2.0
//
// The op families of the plugin: each has its name in the list, and is defined in a file of ops/.
// `supports` and `measure` are pure but for sources that are noted (modules.h): they run without a
// driver. A prepared op keeps a copy of what it needs of the op.
#pragma once

#include <cuda.h>
#include <memory>
#include <orrery/sdk/op_checks.hpp>
#include <string>

// clang-format off
#define ORR_FAMILIES(X)                                                                           \
  X(argmax) X(attention) X(attention_grad) X(categorical) X(cross_entropy) X(cross_entropy_grad)  \
  X(fold) X(gather) X(gather_matmul) X(iota) X(layernorm) X(layernorm_grad) X(matmul)             \
  X(matmul_pointwise) X(norm_grad) X(norm_param_grad) X(pointwise) X(pointwise_next)              \
  X(pointwise_sum) X(reduce) X(reduce_each) X(rmsnorm) X(rmsnorm_grad) X(scatter_add)             \
  X(scatter_matmul) X(slice_at) X(softmax) X(softmax_grad) X(sum_next) X(topk) X(update_slice)
// clang-format on

namespace orr_cuda {

using namespace orr;  // op_checks.hpp

// Device addresses of one launch, one per tensor of the op.
struct Buffers {
  const CUdeviceptr* in;
  const CUdeviceptr* out;
  CUdeviceptr workspace;  // 0 if `measure` said 0; aligned to 256 bytes
};

// A prepared op. `launch` only enqueues on the stream. It does not allocate, does not wait for the
// device, and makes the same calls each time, so that it may be recorded. REQUIRES: the device is
// current on the calling thread.
struct Prepared {
  virtual ~Prepared() = default;
  virtual void launch(CUstream stream, const Buffers& buffers) = 0;
};

struct Family {
  const char* kind;
  // Changes `out`, which is preset to score 100, capturable, all tensors contiguous, never in
  // place, and empty numerics; throws Unsupported.
  void (*supports)(const orr_op&, orr_support& out);
  uint64_t (*measure)(const orr_op&);                   // bytes of workspace; null: none
  std::unique_ptr<Prepared> (*prepare)(const orr_op&);  // the device is open and current
};

#define ORR_DECLARE(kind) extern const Family kind##_family;
ORR_FAMILIES(ORR_DECLARE)
#undef ORR_DECLARE

// Family::prepare of a Prepared that is made of an op.
template <class Op>
std::unique_ptr<Prepared> prepare_as(const orr_op& op) {
  return std::make_unique<Op>(op);
}

constexpr auto divide_up(auto n, decltype(n) by) { return (n + by - 1) / by; }
constexpr auto round_up(auto n, decltype(n) to) { return divide_up(n, to) * to; }

// "f32", "bool", as in the names of device functions: "softmax_f32".
inline const char* dtype_name(int32_t dtype) {
  static const char* const names[] = {"?",   "f32", "f64",  "bf16",    "f16",    "i32",
                                      "i64", "u8",  "bool", "f8_e4m3", "f8_e5m2"};
  return names[orr_dtype_bytes(dtype) ? dtype : 0];
}

}  // namespace orr_cuda
