// SPDX-License-Identifier: Apache-2.0
//
// Bad ops of several results, with kernels and known ops.
#include "fault.h"

#include "../../../examples/plugin-moments/moments.cpp"
#pragma pop_macro("ORR_PLUGIN")

namespace {

orr_status* bad_shape(void* self, int32_t which, const orr_op_call* call, orr_tensor* out) {
  if (orr_status* status = shape(self, which, call, out)) return status;
  if (fault("says_another_second_shape")) out[1].dims[0] += 1;
  return nullptr;
}

orr_status* bad_factors(void* self, int32_t which, const orr_op_call* call, int32_t input,
                        int32_t* out) {
  if (orr_status* status = factors(self, which, call, input, out)) return status;
  if (fault("keeps_a_result_whole") && input == -2) out[0] = -1;
  return nullptr;
}

orr_status* bad_forward(void* self, int32_t which, const orr_op_call* call, orr_program* program,
                        const orr_writer* writer, const int32_t* in, int32_t* out) {
  if (orr_status* status = forward(self, which, call, program, writer, in, out)) return status;
  return orr::guard([&] {
    const orr::Writer w(program, writer);
    if (fault("knows_another_variance")) out[1] = w.mul(out[1], 1.01);
    if (fault("swaps_its_results")) std::swap(out[0], out[1]);
  });
}

orr_status* bad_backward(void* self, int32_t which, const orr_op_call* call, orr_program* program,
                         const orr_writer* writer, const int32_t* in, const int32_t* y,
                         const int32_t* dy, int32_t* dx) {
  const int32_t swapped[] = {dy[1], dy[0]};
  return backward(self, which, call, program, writer, in, y,
                  fault("mixes_up_its_cotangents") ? swapped : dy, dx);
}

constexpr orr_op_api bad_table() {
  orr_op_api bad = op;
  bad.shape = bad_shape, bad.factors = bad_factors, bad.forward = bad_forward;
  bad.backward_of = bad_backward;
  return bad;
}
constexpr orr_op_api bad_op = bad_table();

orr_status* bad_entry(const orr_bootstrap* boot, orr_exports* out) {
  entry(boot, out);
  out->get = [](void*, const char* id, uint32_t version) -> const void* {
    if (version != 1) return nullptr;
    if (std::string_view(id) == "op") return &bad_op;
    return std::string_view(id) == "kernel" ? static_cast<const void*>(&kernels) : nullptr;
  };
  return nullptr;
}

}  // namespace

ORR_PLUGIN(ORR_KIND_OP | ORR_KIND_KERNEL, FAULT_NAME, "0.1.0", "A bad op", bad_entry, 2,
           {{"op", 1, 1}, {"kernel", 1, 1}})
