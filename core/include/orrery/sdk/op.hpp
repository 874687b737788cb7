// SPDX-License-Identifier: Apache-2.0
//
// Helpers for op plugins in C++: functions that append ops and return values, and the entry
// function.
#pragma once

#include <orrery/op.h>
#include <orrery/ops.h>

#include <orrery/sdk/plugin.hpp>
#include <orrery/sdk/write.hpp>
#include <vector>

namespace orr {

// Appends ops; throws Error if the host refuses one. Valid during the call of the plugin.
class Writer : public Ops<Writer, int32_t> {
 public:
  Writer(orr_program* program, const orr_writer* writer) : program_(program), writer_(writer) {}

  // Appends an op and returns its first output.
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

  // In `on_parts`: the sum and the maximum of a value over the ranks.
  int32_t sum_over_ranks(int32_t value) const { return reduced(value, "sum"); }
  int32_t max_over_ranks(int32_t value) const { return reduced(value, "max"); }

  orr_tensor type(int32_t value) const {
    orr_tensor t{};
    check(writer_->type(program_, value, &t));
    return t;
  }

 private:
  int32_t reduced(int32_t value, const char* fn) const {
    int32_t out = -1;
    check(writer_->reduce(program_, value, fn, &out));
    return out;
  }

  orr_program* program_;
  const orr_writer* writer_;
};

// The entry function of a plugin whose ops are in one table.
template <const orr_op_api& table>
orr_status* op_entry(const orr_bootstrap* boot, orr_exports* out) {
  attach(boot);
  out->get = [](void*, const char* id, uint32_t version) -> const void* {
    return std::string_view(id) == "op" && version == 1 ? &table : nullptr;
  };
  return nullptr;
}

}  // namespace orr
