// SPDX-License-Identifier: Apache-2.0
//
// Bad ops.
#include "fault.h"
#include "good_op.cpp"
#pragma pop_macro("ORR_PLUGIN")

#include <unistd.h>

namespace {

orr_status* bad_describe(void* self, int32_t op, orr_op_info* out) {
  while (fault("loops_when_it_describes")) pause();
  return describe(self, op, out);
}

orr_status* bad_shape(void* self, int32_t op, const orr_op_call* call, orr_tensor* out) {
  orr_status* status = shape(self, op, call, out);
  if (fault("says_another_shape")) out->dims[0] += 1;
  return status;
}

orr_status* bad_forward(void* self, int32_t op, const orr_op_call* call, orr_program* program,
                        const orr_writer* writer, const int32_t* in, int32_t* out) {
  if (orr_status* status = forward(self, op, call, program, writer, in, out)) return status;
  if (fault("overflows_the_stack")) deeper(nullptr);
  static int calls = 0;
  return orr::guard([&] {
    const orr::Writer w(program, writer);
    if (fault("writes_another_program")) *out = w.mul(*out, 1.0 + ++calls);
    if (fault("draws_random_numbers")) *out = w.op("categorical", {*out});
  });
}

orr_status* bad_backward(void* self, int32_t op, const orr_op_call* call, orr_program* program,
                         const orr_writer* writer, const int32_t* in, int32_t y, int32_t dy,
                         int32_t* dx) {
  return orr::guard([&] {
    const orr::Writer w(program, writer);
    int32_t x = in[0];
    if (fault("forgets_the_second_derivative")) x = w.op("stop_gradient", {x});
    orr::check(backward(self, op, call, program, writer, &x, y, dy, dx));
    if (fault("gradient_off_by_a_factor")) dx[0] = w.mul(dx[0], 1.01);
    if (fault("gives_no_gradient")) dx[0] = -1;
    if (fault("throws_in_backward")) throw 1;
  });
}

constexpr orr_op_api bad_table() {
  orr_op_api bad = table;
  bad.describe = bad_describe, bad.shape = bad_shape, bad.forward = bad_forward,
  bad.backward = bad_backward;
  return bad;
}
constexpr orr_op_api bad = bad_table();

}  // namespace

ORR_PLUGIN(ORR_KIND_OP, FAULT_NAME, "0.1.0", "A bad op", orr::op_entry<bad>, 1, {{"op", 1, 1}})
