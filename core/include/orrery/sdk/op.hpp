// SPDX-License-Identifier: Apache-2.0
//
// What every plugin of ops in C++ would write again: ops appended by functions that return values,
// an op's table by the names of its functions, and the entry.
#pragma once

#include <orrery/op.h>
#include <orrery/ops.h>

#include <orrery/sdk/plugin.hpp>
#include <orrery/sdk/write.hpp>
#include <vector>

namespace orr {

// Throws Error where the host refuses an op. Lives as long as the call.
class Writer : public Ops<Writer, int32_t> {
 public:
  Writer(orr_program* program, const orr_writer* writer) : program_(program), writer_(writer) {}

  // The first output.
  int32_t op(const char* kind, const std::vector<int32_t>& in,
             const std::vector<orr_attr>& attrs = {}, const orr_expr* expr = nullptr) const {
    orr_op_desc desc{};
    desc.size = sizeof desc, desc.kind = kind;
    desc.n_in = static_cast<int32_t>(in.size()), desc.in = in.data();
    desc.n_attrs = static_cast<int32_t>(attrs.size()), desc.attrs = attrs.data();
    desc.expr = expr;
    int32_t out = -1, n = 0;
    check(writer_->op(program_, &desc, &out, 1, &n));
    return out;
  }

  orr_tensor type(int32_t value) const {
    orr_tensor t{};
    check(writer_->type(program_, value, &t));
    return t;
  }

 private:
  orr_program* program_;
  const orr_writer* writer_;
};

// The entry of a plugin whose ops are in one table.
template <const orr_op_api& table>
orr_status* op_entry(const orr_bootstrap* boot, orr_exports* out) {
  attach(boot);
  out->get = [](void*, const char* id, uint32_t version) -> const void* {
    return std::string_view(id) == "op" && version == 1 ? &table : nullptr;
  };
  return nullptr;
}

}  // namespace orr
