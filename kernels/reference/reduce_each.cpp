// SPDX-License-Identifier: Apache-2.0
//
// reduce_each: a reduce after the other.
#include "op.h"

namespace reference {
namespace {

// The reduce of input i. Stays where it is.
struct One {
  One(const orr_op& op, int i) : x(op.in[i]), y(op.out[i]), reduce(op) {
    x.rank = 3, x.dims[0] = x.dims[2] = 1, x.dims[1] = orr::elements(op.in[i]);
    x.strides[0] = x.dims[1], x.strides[1] = x.strides[2] = 1;
    y.rank = 2, y.dims[0] = y.dims[1] = y.strides[0] = y.strides[1] = 1;
    reduce.n_in = reduce.n_out = 1, reduce.in = &x, reduce.out = &y;
  }
  One(const One&) = delete;
  One& operator=(const One&) = delete;

  orr_tensor x, y;
  orr_op reduce;
};

void check(const orr_op& op) {
  require(op.n_in >= 1 && op.n_in == op.n_out, "as many outputs as inputs are needed");
  require_real(op.in[0], "x");
  const std::string_view fn = orr::attr_text(op, "fn", "");
  require(fn == "sum" || fn == "sumsq", "fn must be \"sum\" or \"sumsq\"");
  for (int i = 0; i < op.n_in; ++i) {
    require_rank(op.in[i], 1, "x");
    require_dtype(op.in[i], op.in[0].dtype, "x");
    require_sum(op.out[i], op.in[0].dtype, "y");
    require_shape(op.out[i], {}, "y");
  }
}

void run(const Call& call) {
  for (int i = 0; i < call.op.n_in; ++i) {
    const One one(call.op, i);
    reduce_family.run({one.reduce, call.in + i, call.out + i, nullptr});
  }
}

}  // namespace

const Family reduce_each_family = {"reduce_each", "reference.reduce.1", check, run, nullptr, 0, 0,
                                   nullptr};

}  // namespace reference
