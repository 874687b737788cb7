// SPDX-License-Identifier: Apache-2.0
//
// The functions of an op family for the plugin's table, and checks that all families share.
// `supports` and `measure` are pure: they run without a driver. A prepared op keeps a copy of what
// it needs of the op.
#pragma once

#include <cuda.h>
#include <orrery/kernel.h>
#include <orrery/ops.h>
#include <orrery/sdk/plugin.hpp>

#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>

namespace orr_cuda {

// Thrown with the reason why an op is not supported; it becomes orr_support.reason (95 characters).
struct Unsupported : std::runtime_error {
  using std::runtime_error::runtime_error;
};
inline void require(bool ok, const std::string& reason) {
  if (!ok) throw Unsupported(reason);
}

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

// Every family, in families.cpp; null ends the list.
extern const Family* const families[];

// Tensors, in elements.
bool is_contiguous(const orr_tensor& t);
inline bool is_real(int32_t dtype) { return dtype >= ORR_F32 && dtype <= ORR_F16; }
inline bool is_index(int32_t dtype) { return dtype == ORR_I32 || dtype == ORR_I64; }
// The dtype of statistics (mean, lse, loss) and of weights beside a tensor of `dtype`.
inline int32_t wide_dtype(int32_t dtype) { return dtype == ORR_F64 ? ORR_F64 : ORR_F32; }
// "f32", "bool", as in the names of device functions: "softmax_f32".
const char* dtype_name(int32_t dtype);

// Checks for `supports`; `name` is the tensor's name in messages.
void require_counts(const orr_op& op, int n_in, int n_out);
void require_rank(const orr_tensor& t, int rank, const char* name);
void require_shape(const orr_tensor& t, std::initializer_list<int64_t> dims, const char* name);
void require_dtype(const orr_tensor& t, int32_t dtype, const char* name);
void require_real(const orr_tensor& t, const char* name);
void require_index(const orr_tensor& t, const char* name);

// The leaves of an op that sums over the batch (ops.h, LEAVES).
struct Leaves {
  explicit Leaves(const orr_op& op);
  int64_t nodes() const { return orr_tree_nodes(lo, lo + n, total); }
  int64_t lo, n, total;
};
// Throws Unsupported unless the leaves are well formed and cut a summed dim of `length` evenly.
void require_leaves(const orr_op& op, int64_t length);

}  // namespace orr_cuda
