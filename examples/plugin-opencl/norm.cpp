// SPDX-License-Identifier: Apache-2.0
//
// softmax and layernorm by rows, the gradients of a norm's parameters by columns.
#include <cstdio>

#include "kernel.h"
#include "sources.h"

namespace ocl {
namespace {

// Which tensors are rows [R,C], statistics [R] and parameters [C].
void check_shapes(const orr_op& op, std::initializer_list<int> rows,
                  std::initializer_list<int> statistics, std::initializer_list<int> parameters) {
  const orr_tensor& x = op.in[0];
  require(x.rank == 2 && x.dims[1] > 0, "x has two dims, and rows are not empty");
  for (int i : rows) require_dims(tensor(op, i), {x.dims[0], x.dims[1]});
  for (int i : statistics) require_dims(tensor(op, i), {x.dims[0]});
  for (int i : parameters) require_dims(tensor(op, i), {x.dims[1]});
}

void check_softmax(const orr_op& op) {
  require_counts(op, 1, 1), require_real(op, {0, 1}), check_shapes(op, {1}, {}, {});
}
void check_softmax_grad(const orr_op& op) {
  require_counts(op, 2, 1), require_real(op, {0, 1, 2}), check_shapes(op, {1, 2}, {}, {});
}
void check_layernorm(const orr_op& op) {
  require_counts(op, 3, 3), require_real(op, {0, 1, 2, 3, 4, 5}),
      check_shapes(op, {3}, {4, 5}, {1, 2});
}
void check_layernorm_grad(const orr_op& op) {
  require_counts(op, 5, 1), require_real(op, {0, 1, 2, 3, 4, 5}),
      check_shapes(op, {1, 5}, {3, 4}, {2});
}
void check_param_grad(const orr_op& op) {
  require(orr::attr_int(op, "rms", 0) == 0, "rmsnorm is not here");
  require_counts(op, 4, 2), require_real(op, {0, 1, 2, 3, 4, 5}), check_shapes(op, {1}, {2, 3}, {});
  for (int i : {0, 1}) require_nodes(op, op.out[i], {op.in[0].dims[1]}, op.in[0].dims[0]);
}

std::vector<Pass> by_rows(const orr_op& op) {
  char eps[64];
  std::snprintf(eps, sizeof eps, " -DEPS=%.17g", orr::attr_real(op, "eps", 1e-5));
  std::vector<int> all;
  for (int i = 0; i < op.n_in + op.n_out; ++i) all.push_back(i);
  return {
      {norm_cl, typed(op.in[0].dtype) + eps, op.kind, op.in[0].dims[0], all, {op.in[0].dims[1]}}};
}

std::vector<Pass> by_columns(const orr_op& op) {
  const int64_t columns = op.in[0].dims[1];
  std::vector<Pass> all;
  for (const Node& node : nodes_of(op))
    all.push_back({norm_cl,
                   typed(op.in[0].dtype) + " -DEPS=0",
                   op.kind,
                   columns,
                   {0, 1, 2, 3, 4, 5},
                   {columns, leaf_length(op, op.in[0].dims[0]), node.first, node.count,
                    static_cast<int64_t>(all.size())}});
  return all;
}

}  // namespace

const Family softmax_family = {"softmax", check_softmax, by_rows};
const Family softmax_grad_family = {"softmax_grad", check_softmax_grad, by_rows};
const Family layernorm_family = {"layernorm", check_layernorm, by_rows};
const Family layernorm_grad_family = {"layernorm_grad", check_layernorm_grad, by_rows};
const Family norm_param_grad_family = {"norm_param_grad", check_param_grad, by_columns};

}  // namespace ocl
