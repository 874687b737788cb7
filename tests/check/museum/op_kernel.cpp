// SPDX-License-Identifier: Apache-2.0
//
// Bad ops with kernels of their own.
#include "fault.h"

#include "../../../examples/plugin-ema/ema.cpp"
#pragma pop_macro("ORR_PLUGIN")

namespace {

orr_status* bad_factors(void* self, int32_t which, const orr_op_call* call, int32_t input,
                        int32_t* out) {
  if (orr_status* status = factors(self, which, call, input, out)) return status;
  if (fault("has_factors_of_nothing") && input == 0) out[0] = 7;
  if (fault("leaves_the_batch_out")) out[0] = -1;
  if (const int32_t last = call->in[0].rank - 1; fault("cuts_its_recursion")) out[last] = last;
  return nullptr;
}

// One row's last number goes on into the next row.
orr_status* bad_launch(orr_kernel* kernel, orr_stream* stream, const orr_buffer* in,
                       const orr_buffer* out, const orr_buffer* workspace) {
  Kernel& k = *reinterpret_cast<Kernel*>(kernel);
  Kernel bad = k;
  if (fault("goes_on_into_the_next_row")) bad.columns *= bad.rows, bad.rows = bad.rows > 0;
  if (fault("knows_no_reverse")) bad.reverse = false;
  return launch(reinterpret_cast<orr_kernel*>(&bad), stream, in, out, workspace);
}

constexpr orr_op_api bad_table() {
  orr_op_api bad = op;
  bad.factors = bad_factors;
  return bad;
}
constexpr orr_op_api bad_op = bad_table();
const orr_kernel_api bad_kernels = {sizeof(orr_kernel_api),
                                    nullptr,
                                    "host",
                                    probe,
                                    supports,
                                    measure,
                                    prepare,
                                    release,
                                    bad_launch,
                                    nullptr};

orr_status* bad_entry(const orr_bootstrap* boot, orr_exports* out) {
  entry(boot, out);
  out->get = [](void*, const char* id, uint32_t version) -> const void* {
    if (version != 1) return nullptr;
    if (std::string_view(id) == "op") return &bad_op;
    return std::string_view(id) == "kernel" ? static_cast<const void*>(&bad_kernels) : nullptr;
  };
  return nullptr;
}

}  // namespace

ORR_PLUGIN(ORR_KIND_OP | ORR_KIND_KERNEL, FAULT_NAME, "0.1.0", "A bad op", bad_entry, 2,
           {{"op", 1, 1}, {"kernel", 1, 1}})
