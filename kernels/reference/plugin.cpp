// SPDX-License-Identifier: Apache-2.0
//
// The kernel plugin "reference": ops.h in plain loops, for every op and dtype. Other kernel plugins
// are tested against it, and it runs ops that no faster plugin supports.
#include <orrery/sdk/plugin.hpp>

#include "table.h"

namespace reference {
namespace {

const void* get_table(void*, const char* id, uint32_t version) {
  return std::string_view(id) == "kernel" && version == 1 ? &table() : nullptr;
}

orr_status* entry(const orr_bootstrap* boot, orr_exports* out) {
  orr::attach(boot);
  *out = {sizeof(*out), nullptr, get_table, nullptr};
  return nullptr;
}

}  // namespace
}  // namespace reference

ORR_PLUGIN(ORR_KIND_KERNEL, "reference", "1.0.0", "Every op as plain loops: the specification",
           reference::entry, 1, {{"kernel", 1, 1}})
