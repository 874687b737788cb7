// SPDX-License-Identifier: Apache-2.0
//
// pointwise: any layout; each expression is a program of its own, whatever the shapes.
#include "pointwise.h"

#include <algorithm>

#include "kernel.h"
#include "sources.h"

namespace ocl {
namespace {

void check(const orr_op& op) {
  require(op.expr && op.n_out >= 1 && op.expr->n_outputs == op.n_out,
          "a pointwise op has outputs and an expression of as many");
  const orr_tensor& shape = op.out[0];
  for (int i = 0; i < op.n_in + op.n_out; ++i) {
    const orr_tensor& t = tensor(op, i);
    require(t.rank == shape.rank, "all tensors have one rank");
    for (int d = 0; d < t.rank; ++d)
      require(t.dims[d] == shape.dims[d] || (i < op.n_in && t.dims[d] == 1),
              "the dims of the tensors do not fit");
  }
  for (int k = 0; k < op.expr->n_instrs; ++k) {
    const orr_instr& e = op.expr->instrs[k];
    c_type(e.dtype);
    if (e.fn == ORR_FN_INPUT)
      require(e.a >= 0 && e.a < op.n_in && op.in[e.a].dtype == e.dtype,
              "an instruction reads an input that is not there");
  }
  source_of(op);
}

std::vector<Pass> passes(const orr_op& op) {
  const orr_tensor& shape = op.out[0];
  std::vector<int64_t> layout(shape.dims, shape.dims + shape.rank);
  std::vector<int> all;
  for (int i = 0; i < op.n_in + op.n_out; ++i) {
    const orr_tensor& t = tensor(op, i);
    for (int d = 0; d < t.rank; ++d) layout.push_back(t.dims[d] == 1 ? 0 : t.strides[d]);
    all.push_back(i);
  }
  if (layout.empty()) layout.push_back(0);  // of scalars; a buffer is never empty
  return {{std::string(pointwise_cl) + source_of(op),
           "",
           "pointwise",
           orr::elements(shape),
           all,
           {shape.rank},
           layout}};
}

bool alike(const orr_tensor& a, const orr_tensor& b) {
  return a.dtype == b.dtype && a.rank == b.rank && std::equal(a.dims, a.dims + a.rank, b.dims) &&
         std::equal(a.strides, a.strides + a.rank, b.strides);
}

// The first input that output 0 may overwrite.
int32_t inplace(const orr_op& op) {
  for (int i = 0; i < op.n_in; ++i)
    if (alike(op.in[i], op.out[0])) return i + 1;
  return 0;
}

}  // namespace

const Family pointwise_family = {"pointwise", check, passes, ~0u, ~0u, inplace};

}  // namespace ocl
