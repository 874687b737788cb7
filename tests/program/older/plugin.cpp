// SPDX-License-Identifier: Apache-2.0
//
// The kernel plugin "older" of tests: attention as kernels knew it before there were grouped heads
// and windows. It is as eager as they were, says nothing of what it takes, and would ignore both;
// so that nobody trains on that, it fails where it gets one.
#include <orrery/ops.h>
#include <orrery/sdk/plugin.hpp>
#include <string_view>

#include "table.h"

namespace older {
namespace {

int32_t probe(void*, char* reason, uint32_t bytes) {
  if (bytes) reason[0] = 0;
  return 1;
}

void supports(void*, const orr_op* op, orr_support* out) {
  *out = {};
  out->size = sizeof *out;
  const bool here = std::string_view(op->kind).starts_with("attention");
  if (here) reference::table().supports(nullptr, op, out);
  out->takes = 0;
  if (out->score > 0) out->score = 1000;
  if (!here) orr::copy_text(out->reason, "only attention is here");
}

orr_status* measure(void*, const orr_op* op, orr_kernel_size* out) {
  return reference::table().measure(nullptr, op, out);
}

orr_status* prepare(void*, const orr_op* op, orr_kernel** out) {
  return orr::guard([&] {
    const int q = std::string_view(op->kind) == "attention" ? 0 : 1;
    if (op->in[q].dims[1] != op->in[q + 1].dims[1] || orr::attr_int(*op, "window", 0))
      throw orr::Error(ORR_FAILED, "an older kernel would compute this wrongly");
    orr::check(reference::table().prepare(nullptr, op, out));
  });
}

void release(void*, orr_kernel* kernel) { reference::table().release(nullptr, kernel); }

orr_status* launch(orr_kernel* kernel, orr_stream* stream, const orr_buffer* in,
                   const orr_buffer* out, const orr_buffer* work) {
  return reference::table().launch(kernel, stream, in, out, work);
}

const orr_kernel_api kernels = {sizeof(orr_kernel_api),
                                nullptr,
                                "host",
                                probe,
                                supports,
                                measure,
                                prepare,
                                release,
                                launch,
                                nullptr};

orr_status* entry(const orr_bootstrap* boot, orr_exports* out) {
  orr::attach(boot);
  out->get = [](void*, const char* id, uint32_t version) -> const void* {
    return std::string_view(id) == "kernel" && version == 1 ? &kernels : nullptr;
  };
  return nullptr;
}

}  // namespace
}  // namespace older

ORR_PLUGIN(ORR_KIND_KERNEL, "older", "1.0.0", "Attention of old", older::entry, 1,
           {{"kernel", 1, 1}})
