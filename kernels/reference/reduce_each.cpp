// SPDX-License-Identifier: Apache-2.0
//
// reduce_each: a reduce after the other.
#include <orrery/sdk/kind_checks.hpp>

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

void run(const Call& call) {
  for (int i = 0; i < call.op.n_in; ++i) {
    const One one(call.op, i);
    reduce_family.run({one.reduce, call.in + i, call.out + i, nullptr});
  }
}

}  // namespace

const Family reduce_each_family = {
    "reduce_each", "reference.reduce.1", require_reduce_each, run, nullptr, 0, 0, nullptr};

}  // namespace reference
