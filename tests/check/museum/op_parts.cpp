// SPDX-License-Identifier: Apache-2.0
//
// Bad ops that are written on parts of their inputs.
#include "fault.h"

#include "../../../examples/plugin-parts/parts.cpp"
#pragma pop_macro("ORR_PLUGIN")

namespace {

orr_status* bad_parts(void* self, int32_t which, const orr_op_call* call, const orr_op_part* part,
                      orr_program* program, const orr_writer* writer, const int32_t* in,
                      int32_t* out) {
  if (fault("makes_the_whole_on_each_rank"))
    return forward(self, which, call, program, writer, in, out);
  orr_writer bad = *writer;
  if (fault("takes_the_largest_of_its_part"))
    bad.reduce = [](orr_program*, int32_t value, const char*, int32_t* sum) -> orr_status* {
      *sum = value;
      return nullptr;
    };
  if (fault("reduces_on_one_rank_alone") && part->rank > 0)
    return forward(self, which, call, program, writer, in, out);
  orr_status* status = on_parts(self, which, call, part, program, &bad, in, out);
  if (status || !fault("adds_too_little") || part->rank > 0) return status;
  return orr::guard([&] { *out = orr::Writer(program, writer).mul(*out, 0.5); });
}

constexpr orr_op_api bad_table() {
  orr_op_api bad = op;
  bad.on_parts = bad_parts;
  if (fault("writes_no_parts")) bad.on_parts = nullptr;
  return bad;
}
const orr_op_api bad_op = bad_table();

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
