// SPDX-License-Identifier: Apache-2.0
//
// What an op family gives: whether it takes an op, and the passes that compute it.
#pragma once

#include <orrery/kernel.h>
#include <orrery/ops.h>
#include <orrery/sdk/plugin.hpp>

#include <stdexcept>
#include <string>
#include <vector>

namespace ocl {

// Why an op is not supported; becomes orr_support.reason.
struct Refused : std::runtime_error {
  using std::runtime_error::runtime_error;
};
inline void require(bool ok, const std::string& reason) {
  if (!ok) throw Refused(reason);
}

// One enqueued kernel: work-items 0 .. items-1. Its arguments are `tensors` (inputs first, then
// outputs, by number), each as base and byte offset, `layout` if there is one, the record of faults
// if `fault`, then `numbers` and `items` as long. One with a fault runs also for no items, and
// looks before it asks for its own.
struct Pass {
  std::string source;
  std::string options;
  const char* name;
  int64_t items;
  std::vector<int> tensors;
  std::vector<int64_t> numbers;
  std::vector<int64_t> layout = {};
  std::string fault = {};  // as add_fault's text; its number is appended to `numbers`
};

struct Family {
  const char* kind;
  void (*check)(const orr_op&);                // throws Refused
  std::vector<Pass> (*passes)(const orr_op&);  // of a checked op
  uint32_t strided_in = 0, strided_out = 0;
  int32_t (*inplace)(const orr_op&) = nullptr;  // as orr_support.inplace; null: never
};

const char* c_type(int32_t dtype);  // "float"; throws Refused for what this plugin does not store
bool is_real(int32_t dtype);

// The options of a kernel whose elements are of `dtype`: -DT=float.
std::string typed(int32_t dtype);
void require_counts(const orr_op& op, int n_in, int n_out);
// f32, or f64 where the device has it; all tensors of `which` alike.
void require_real(const orr_op& op, std::initializer_list<int> which);
void require_index(const orr_tensor& t);
void require_dims(const orr_tensor& t, std::initializer_list<int64_t> dims);
inline const orr_tensor& tensor(const orr_op& op, int i) {
  return i < op.n_in ? op.in[i] : op.out[i - op.n_in];
}

// Sums over the batch (ops.h, LEAVES): one node of the tree that the op's leaves complete.
struct Node {
  int64_t first, count;  // leaves
};
std::vector<Node> nodes_of(const orr_op& op);
int64_t leaf_length(const orr_op& op, int64_t summed);  // elements of one leaf
// `t` ends in `dims`, behind the number of nodes if it is not 1.
void require_nodes(const orr_op& op, const orr_tensor& t, std::initializer_list<int64_t> dims,
                   int64_t summed);

extern const Family pointwise_family, matmul_family, reduce_family, softmax_family,
    softmax_grad_family, layernorm_family, layernorm_grad_family, norm_param_grad_family,
    attention_family, attention_grad_family, cross_entropy_family, cross_entropy_grad_family,
    gather_family, scatter_add_family, slice_at_family, update_slice_family, iota_family,
    argmax_family, categorical_family;

}  // namespace ocl
