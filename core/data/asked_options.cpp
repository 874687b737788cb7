// SPDX-License-Identifier: Apache-2.0
#include "data/asked_options.h"

#include "base/error.h"
#include "base/text.h"
#include "plugin/host.h"

namespace orrery {

template <class T>
const T* AskedOptions::ask(const void* self, const char* name, const char* expected) {
  const auto& own = *static_cast<const AskedOptions*>(self);
  own.asked_.insert(name);
  const Attr* given = own.options_.find(name);
  if (!given) return nullptr;
  const T* value = std::get_if<T>(given);
  if (!value) own.wrong_ = fmt::format("option '{}' must be {}", name, expected);
  return value;
}

orr_options AskedOptions::table() const {
  orr_options table{};
  table.self = this;
  table.integer = [](const void* self, const char* name, int64_t fallback) {
    const auto* value = ask<int64_t>(self, name, "a whole number");
    return value ? *value : fallback;
  };
  table.real = [](const void* self, const char* name, double fallback) {
    const Attr* given = static_cast<const AskedOptions*>(self)->options_.find(name);
    if (given && std::holds_alternative<int64_t>(*given))
      return static_cast<double>(*ask<int64_t>(self, name, "a number"));
    const auto* value = ask<double>(self, name, "a number");
    return value ? *value : fallback;
  };
  table.text = [](const void* self, const char* name, const char* fallback) {
    const auto* value = ask<std::string>(self, name, "a string");
    return value ? value->c_str() : fallback;
  };
  return table;
}

void AskedOptions::check_call(orr_status* status, const std::string& subject) const {
  if (!wrong_.empty()) {
    host_table().error_release(status);
    fail(ORR_INVALID, "{}: {}", subject, wrong_);
  }
  orrery::check(status);
  const std::vector<std::string> known(asked_.begin(), asked_.end());
  for (const auto& [name, value] : options_)
    if (!asked_.count(name.str()))
      fail(ORR_INVALID, "{}: unknown option '{}'{}; it has {}", subject, name,
           did_you_mean(name.str(), known), known.empty() ? "none" : join(known, ", "));
}

}  // namespace orrery
