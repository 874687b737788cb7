// SPDX-License-Identifier: Apache-2.0
//
// attention and its gradient: T x S is never stored.
#include <cstdio>
#include <orrery/sdk/attention.hpp>

#include "kernel.h"
#include "sources.h"

namespace ocl {
namespace {

constexpr int64_t most_columns = 256;  // private numbers of a work-item

void check_counts(const orr_op& op, int operands, int n_out) {
  require(orr::AttentionDropout::fits(op, operands), orr::attention_inputs);
  require_counts(op, op.n_in, n_out);
}

void check_like(const orr_op& op, int which, const orr_tensor& x) {
  const orr_tensor& t = tensor(op, which);
  require_dims(t, {x.dims[0], x.dims[1], x.dims[2], x.dims[3]});
  require(x.dims[3] <= 1 || t.strides[3] == 1, "the last stride must be 1");
}

// q, k, v are the inputs from `q` on.
void check_inputs(const orr_op& op, int q) {
  const orr_tensor &query = op.in[q], &key = op.in[q + 1];
  require(query.rank == 4 && key.rank == 4, "q and k have four dims");
  require(query.dims[3] > 0 && query.dims[3] <= most_columns, "heads of 1 to 256 columns are here");
  require_dims(key, {query.dims[0], query.dims[1], key.dims[2], query.dims[3]});
  check_like(op, q, query), check_like(op, q + 1, key), check_like(op, q + 2, key);
}

void check_lse(const orr_tensor& lse, const orr_tensor& q) {
  require(lse.dtype == ORR_F32 || lse.dtype == q.dtype, "lse is f32");
  require_dims(lse, {q.dims[0], q.dims[1], q.dims[2]});
}

void check_forward(const orr_op& op) {
  check_counts(op, 3, 2), require_real(op, {0, 1, 2, op.n_in});
  check_inputs(op, 0), check_like(op, op.n_in, op.in[0]), check_lse(op.out[1], op.in[0]);
}

void check_grad(const orr_op& op) {
  check_counts(op, 6, 3);
  require_real(op, {1, 0, 2, 3, 4, op.n_in, op.n_in + 1, op.n_in + 2});
  check_inputs(op, 1), check_like(op, 0, op.in[1]), check_like(op, 4, op.in[1]),
      check_lse(op.in[5], op.in[1]);
  for (int i = 0; i < 3; ++i) check_like(op, op.n_in + i, op.in[1 + i]);
}

std::string dropout_of(const orr_op& op, int operands) {
  const orr::AttentionDropout dropout(op, operands);
  if (!dropout.on()) return "";
  char text[160];
  std::snprintf(text, sizeof text, " -DRATE=%.9gf -DKEEP=%.17g -DRNG=%uu -DALL=%lld -DLO=%lld",
                double{dropout.rate()}, dropout.scale(), dropout.rng_id(),
                static_cast<long long>(dropout.heads()), static_cast<long long>(dropout.head_lo()));
  return text;
}

std::string options_of(const orr_op& op, const orr_tensor& q, const orr_tensor& lse) {
  char text[128];
  std::snprintf(text, sizeof text, " -DD=%d -DCAUSAL=%d -DSCALE=%.17g", static_cast<int>(q.dims[3]),
                orr::attr_int(op, "causal", 0) != 0, orr::attr_real(op, "scale", 1.0));
  return typed(q.dtype) + " -DLSE=" + c_type(lse.dtype) + text;
}

std::vector<int64_t> strides_of(const orr_op& op, std::initializer_list<int> which) {
  std::vector<int64_t> all;
  for (int i : which) all.insert(all.end(), tensor(op, i).strides, tensor(op, i).strides + 3);
  return all;
}

// All inputs, then the outputs from `first` on, `n` of them.
std::vector<int> tensors_of(const orr_op& op, int first, int n) {
  std::vector<int> all;
  for (int i = 0; i < op.n_in; ++i) all.push_back(i);
  for (int i = first; i < first + n; ++i) all.push_back(op.n_in + i);
  return all;
}

std::vector<Pass> forward(const orr_op& op) {
  const orr_tensor& q = op.in[0];
  const std::vector<int64_t> shape = {q.dims[1], q.dims[2], op.in[1].dims[2]};
  return {{attention_cl, options_of(op, q, op.out[1]) + dropout_of(op, 3), "attention",
           q.dims[0] * q.dims[1] * q.dims[2], tensors_of(op, 0, 2), shape,
           strides_of(op, {0, 1, 2, op.n_in})}};
}

std::vector<Pass> gradient(const orr_op& op) {
  const orr_tensor &q = op.in[1], &k = op.in[2];
  const int n = op.n_in;
  const std::vector<int64_t> shape = {q.dims[1], q.dims[2], k.dims[2]},
                             strides = strides_of(op, {0, 1, 2, 3, 4, n, n + 1, n + 2});
  const std::string options = options_of(op, q, op.in[5]) + dropout_of(op, 6);
  const int64_t heads = q.dims[0] * q.dims[1];
  return {
      {attention_cl, options, "of_queries", heads * q.dims[2], tensors_of(op, 0, 1), shape,
       strides},
      {attention_cl, options, "of_keys", heads * k.dims[2], tensors_of(op, 1, 2), shape, strides}};
}

}  // namespace

const Family attention_family = {"attention", check_forward, forward, 7, 1};
const Family attention_grad_family = {"attention_grad", check_grad, gradient, 31, 7};

}  // namespace ocl
