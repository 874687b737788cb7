// SPDX-License-Identifier: Apache-2.0
//
// Helpers for strategy plugins in C++: the table from its functions, so that plugins still build
// when the table grows, and the entry function.
#pragma once

#include <orrery/comm.h>
#include <orrery/strategy.h>

#include <cstddef>
#include <orrery/sdk/plugin.hpp>

namespace orr {

// A table without `schedule` and `transform_forward`; set those that the strategy has.
constexpr orr_strategy_api strategy_table(decltype(orr_strategy_api::describe) describe,
                                          decltype(orr_strategy_api::transform) transform,
                                          decltype(orr_strategy_api::predict) predict = nullptr) {
  orr_strategy_api table{};
  table.size = sizeof table;
  table.describe = describe, table.transform = transform, table.predict = predict;
  return table;
}

// Says which texts options may have (orr_strategy_info.choices), to a host that knows the field.
template <size_t n>
void tell_choices(orr_strategy_info* out, const char* const (&choices)[n]) {
  if (out->size > offsetof(orr_strategy_info, choices)) out->choices = choices;
}

// The `predict` of a strategy that causes no traffic.
inline orr_status* predict_nothing(void*, const orr_predict_query*, orr_prediction* out) {
  return guard([&] { out->bytes_sent = 0; });
}

// The `predict` of a strategy that causes only messages: the sender sends one once, the receiver
// sends nothing.
inline orr_status* predict_messages(void*, const orr_predict_query* q, orr_prediction* out) {
  return guard([&] { out->bytes_sent = q->op == ORR_COLL_SEND ? q->reduced_bytes : 0; });
}

// The entry function of a plugin with one strategy.
template <const orr_strategy_api& table>
orr_status* strategy_entry(const orr_bootstrap* boot, orr_exports* out) {
  attach(boot);
  out->get = [](void*, const char* id, uint32_t version) -> const void* {
    return std::string_view(id) == "strategy" && version == 1 ? &table : nullptr;
  };
  return nullptr;
}

}  // namespace orr
