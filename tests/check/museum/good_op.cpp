// SPDX-License-Identifier: Apache-2.0
//
// A good plugin of one op, softsign: x / (1 + |x| * slope).
#pragma once

#include <orrery/sdk/op.hpp>

namespace {

const orr_attr options[] = {orr::real_attr("slope", 1)};

int32_t count(void*) { return 1; }

orr_status* describe(void*, int32_t, orr_op_info* out) {
  out->name = "softsign", out->summary = "x / (1 + |x| * slope)";
  out->n_in = 1, out->gradient = 1, out->n_examples = 1;
  out->options = options, out->n_options = 1;
  return nullptr;
}

orr_status* example(void*, int32_t, int32_t, orr_tensor* in) {
  in[0].dtype = ORR_F32, in[0].rank = 2, in[0].dims[0] = 6, in[0].dims[1] = 4;
  return nullptr;
}

orr_status* shape(void*, int32_t, const orr_op_call* call, orr_tensor* out) {
  *out = call->in[0];
  return nullptr;
}

// 1 + |x| * slope.
int32_t divisor(const orr::Writer& w, const orr_op_call* call, int32_t x) {
  return w.add(w.mul(w.pointwise(ORR_FN_ABS, {x}), call->options[0].f), 1.0);
}

orr_status* forward(void*, int32_t, const orr_op_call* call, orr_program* program,
                    const orr_writer* writer, const int32_t* in, int32_t* out) {
  return orr::guard([&] {
    const orr::Writer w(program, writer);
    *out = w.div(in[0], divisor(w, call, in[0]));
  });
}

// dy / (1 + |x| * slope)^2.
orr_status* backward(void*, int32_t, const orr_op_call* call, orr_program* program,
                     const orr_writer* writer, const int32_t* in, int32_t, int32_t dy,
                     int32_t* dx) {
  return orr::guard([&] {
    const orr::Writer w(program, writer);
    const int32_t d = divisor(w, call, in[0]);
    dx[0] = w.div(dy, w.mul(d, d));
  });
}

constexpr orr_op_api op_table() {
  orr_op_api t{};
  t.size = sizeof t, t.count = count, t.describe = describe, t.example = example, t.shape = shape;
  t.forward = forward, t.backward = backward;
  return t;
}
constexpr orr_op_api table = op_table();

}  // namespace
