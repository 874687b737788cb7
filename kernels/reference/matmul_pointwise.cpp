// SPDX-License-Identifier: Apache-2.0
//
// matmul_pointwise: its matmul into scratch, then its pointwise op.
#include <vector>

#include "op.h"

namespace reference {
namespace {

enum { kLine = 64 };  // the registers of the expression begin on one

int32_t product_dtype(const orr_op& op) {
  for (int k = 0; op.expr && k < op.expr->n_instrs; ++k)
    if (op.expr->instrs[k].fn == ORR_FN_INPUT && op.expr->instrs[k].a == 0)
      return op.expr->instrs[k].dtype;
  throw Unsupported("the expression does not read the product");
}

orr_tensor product_of(const orr_op& op) {
  require(op.n_out >= 1, "a result is needed");
  require_rank(op.out[0], 3, "y");
  orr_tensor y = op.out[0];
  y.dtype = product_dtype(op);
  y.strides[0] = y.dims[1] * y.dims[2], y.strides[1] = y.dims[2], y.strides[2] = 1;
  return y;
}

// The two ops. Stays where it is.
struct Parts {
  explicit Parts(const orr_op& op) : y(product_of(op)), in{y}, matmul(op), pointwise(op) {
    in.insert(in.end(), op.in + 2, op.in + op.n_in);
    matmul.n_in = 2, matmul.n_out = 1, matmul.out = &y, matmul.expr = nullptr;
    pointwise.n_in = op.n_in - 1, pointwise.in = in.data(), pointwise.n_attrs = 0;
  }
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;

  uint64_t product_bytes() const {
    const auto bytes = uint64_t(orr::elements(y) * orr_dtype_bytes(y.dtype));
    return (bytes + kLine - 1) / kLine * kLine;
  }

  orr_tensor y;
  std::vector<orr_tensor> in;
  orr_op matmul, pointwise;
};

void check(const orr_op& op) {
  require(op.n_in >= 2, "a and b are needed");
  require(!orr::attr(op, "leaf_n"), "no leaves here");
  const Parts parts(op);
  matmul_family.check(parts.matmul);
  pointwise_family.check(parts.pointwise);
}

uint64_t workspace(const orr_op& op) {
  const Parts parts(op);
  return parts.product_bytes() + pointwise_family.workspace(parts.pointwise);
}

void run(const Call& call) {
  const Parts parts(call.op);
  orr_memory memory{};
  memory.host = call.workspace;
  std::vector<orr_buffer> in{{&memory, 0, parts.product_bytes()}};
  in.insert(in.end(), call.in + 2, call.in + call.op.n_in);
  matmul_family.run({parts.matmul, call.in, in.data(), nullptr});
  pointwise_family.run(
      {parts.pointwise, in.data(), call.out, call.workspace + parts.product_bytes()});
}

}  // namespace

const Family matmul_pointwise_family = {"matmul_pointwise",
                                        "reference.matmul.k256.1+pointwise.1",
                                        check,
                                        run,
                                        workspace,
                                        ~0u,
                                        ~0u,
                                        nullptr};

}  // namespace reference
