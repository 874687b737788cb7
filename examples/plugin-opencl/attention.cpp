// SPDX-License-Identifier: Apache-2.0
//
// attention and its gradient: T x S is never stored.
#include <cstdio>

#include "kernel.h"
#include "sources.h"

namespace ocl {
namespace {

constexpr int64_t most_columns = 256;  // private numbers of a work-item

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
  require_counts(op, 3, 2), require_real(op, {0, 1, 2, 3});
  check_inputs(op, 0), check_like(op, 3, op.in[0]), check_lse(op.out[1], op.in[0]);
}

void check_grad(const orr_op& op) {
  require_counts(op, 6, 3), require_real(op, {1, 0, 2, 3, 4, 6, 7, 8});
  check_inputs(op, 1), check_like(op, 0, op.in[1]), check_like(op, 4, op.in[1]),
      check_lse(op.in[5], op.in[1]);
  for (int i = 0; i < 3; ++i) check_like(op, 6 + i, op.in[1 + i]);
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

std::vector<Pass> forward(const orr_op& op) {
  const orr_tensor& q = op.in[0];
  const std::vector<int64_t> shape = {q.dims[1], q.dims[2], op.in[1].dims[2]};
  return {{attention_cl,
           options_of(op, q, op.out[1]),
           "attention",
           q.dims[0] * q.dims[1] * q.dims[2],
           {0, 1, 2, 3, 4},
           shape,
           strides_of(op, {0, 1, 2, 3})}};
}

std::vector<Pass> gradient(const orr_op& op) {
  const orr_tensor &q = op.in[1], &k = op.in[2];
  const std::vector<int64_t> shape = {q.dims[1], q.dims[2], k.dims[2]},
                             strides = strides_of(op, {0, 1, 2, 3, 4, 6, 7, 8});
  const std::string options = options_of(op, q, op.in[5]);
  const int64_t heads = q.dims[0] * q.dims[1];
  return {{attention_cl,
           options,
           "of_queries",
           heads * q.dims[2],
           {0, 1, 2, 3, 4, 5, 6},
           shape,
           strides},
          {attention_cl,
           options,
           "of_keys",
           heads * k.dims[2],
           {0, 1, 2, 3, 4, 5, 7, 8},
           shape,
           strides}};
}

}  // namespace

const Family attention_family = {"attention", check_forward, forward, 7, 1};
const Family attention_grad_family = {"attention_grad", check_grad, gradient, 31, 7};

}  // namespace ocl
