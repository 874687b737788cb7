// SPDX-License-Identifier: Apache-2.0
//
// A step as it is read: its values, and what they are made of.
#pragma once

#include <orrery/strategy.h>

#include <string>
#include <vector>

#include <orrery/sdk/plugin.hpp>

namespace server {

struct Value {
  int32_t role = 0, batch = 0;
  std::string name, beside, where;
  orr_tensor type{};
  bool is_state() const { return role == ORR_ROLE_PARAM || role == ORR_ROLE_STATE; }
};

class View {
 public:
  View(orr_program* program, const orr_edit* edit) : program_(program), edit_(edit) {
    constexpr uint32_t all_roles = (2u << ORR_ROLE_BATCH) - 1;
    orr::check(edit->each(program, all_roles, &values_,
                          [](void* arg, int32_t id, const orr_value_info* v) {
                            auto& values = *static_cast<std::vector<Value>*>(arg);
                            if (values.size() <= static_cast<size_t>(id))
                              values.resize(static_cast<size_t>(id) + 1);
                            values[static_cast<size_t>(id)] = {v->role,   v->batch, v->name,
                                                               v->beside, v->where, v->type};
                            return static_cast<orr_status*>(nullptr);
                          }));
  }

  int32_t size() const { return static_cast<int32_t>(values_.size()); }
  const Value& operator[](int32_t id) const { return values_[static_cast<size_t>(id)]; }
  std::vector<int32_t> inputs(int32_t id) const {
    std::vector<int32_t> in(static_cast<size_t>(edit_->inputs(program_, id, nullptr, 0)));
    edit_->inputs(program_, id, in.data(), static_cast<int32_t>(in.size()));
    return in;
  }
  int32_t updated(int32_t state) const { return edit_->updated(program_, state); }
  bool changes(int32_t id) const { return (*this)[id].is_state() && updated(id) != id; }
  int32_t gradient(int32_t parameter) const { return edit_->gradient(program_, parameter); }

 private:
  orr_program* program_;
  const orr_edit* edit_;
  std::vector<Value> values_;
};

}  // namespace server
