// SPDX-License-Identifier: Apache-2.0
//
// argmax, and draws from a categorical distribution.
#include "kernel.h"
#include "sources.h"

namespace ocl {
namespace {

void check_rows(const orr_op& op) {
  require(op.in[0].rank == 2 && op.in[0].dims[1] > 0, "x has two dims, and rows are not empty");
  require(op.out[0].dtype == ORR_I64, "the choice is i64");
  require_dims(op.out[0], {op.in[0].dims[0]});
}

void check_argmax(const orr_op& op) {
  require_counts(op, 1, 1), check_rows(op);
  c_type(op.in[0].dtype);
}

std::vector<Pass> argmax(const orr_op& op) {
  return {
      {choose_cl, typed(op.in[0].dtype), "argmax", op.in[0].dims[0], {0, 1}, {op.in[0].dims[1]}}};
}

void check_categorical(const orr_op& op) {
  require_counts(op, 4, 1), require_real(op, {0}), check_rows(op);
  c_type(ORR_F64);
  for (int i = 1; i < 4; ++i)
    require(op.in[i].dtype == ORR_I64 && orr::elements(op.in[i]) == 1,
            "seed, step and base are i64 scalars");
}

std::vector<Pass> categorical(const orr_op& op) {
  return {{choose_cl,
           typed(op.in[0].dtype) + " -DDRAW",
           "categorical",
           op.in[0].dims[0],
           {0, 1, 2, 3, 4},
           {op.in[0].dims[1], orr::attr_int(op, "rng_id", 0)}}};
}

}  // namespace

const Family argmax_family = {"argmax", check_argmax, argmax};
const Family categorical_family = {"categorical", check_categorical, categorical};

}  // namespace ocl
