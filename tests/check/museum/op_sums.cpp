// SPDX-License-Identifier: Apache-2.0
//
// Bad ops that sum over the batch.
#include "fault.h"

#include "../../../examples/plugin-sums/sums.cpp"
#pragma pop_macro("ORR_PLUGIN")

namespace {

orr_status* bad_factors(void* self, int32_t which, const orr_op_call* call, int32_t input,
                        int32_t* out) {
  if (orr_status* status = factors(self, which, call, input, out)) return status;
  if (fault("sums_columns_too") && input < 0) out[0] = -1;
  return nullptr;
}

orr_status* bad_launch(orr_kernel* kernel, orr_stream* stream, const orr_buffer* in,
                       const orr_buffer* out, const orr_buffer* workspace) {
  Kernel k = *reinterpret_cast<Kernel*>(kernel);
  if (fault("skips_the_last_row")) k.rows -= 1;
  if (orr_status* status = launch(reinterpret_cast<orr_kernel*>(&k), stream, in, out, workspace))
    return status;
  if (fault("makes_means") && k.dtype == ORR_F64)
    for (int64_t c = 0; c < k.columns; ++c)
      orr::data<double>(out[0])[c] /= static_cast<double>(k.rows);
  return nullptr;
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
