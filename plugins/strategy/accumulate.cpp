// SPDX-License-Identifier: Apache-2.0
//
// Gradient accumulation: a rank computes its microbatches one after another, forward and backward,
// and adds their gradients, so that the activations of one are alive at a time. EXACT: gradients are
// added in the canonical tree (design section 8), at the price of one accumulator for every level of
// it that waits.
#include <orrery/strategy.h>

#include <orrery/sdk/plugin.hpp>

namespace {

orr_status* describe(void*, orr_strategy_info* out) {
  return orr::guard([&] {
    out->numeric_class = ORR_CLASS_EXACT;
    out->provides = "an order of microbatches", out->requires_ = "", out->conflicts = "an order of microbatches";
  });
}

orr_status* transform(void*, orr_program* program, const orr_edit* edit, const orr_options*) {
  return orr::guard([&] { orr::check(edit->loop(program)); });
}

orr_status* predict(void*, const orr_predict_query*, orr_prediction* out) {
  return orr::guard([&] { out->bytes_sent = 0; });
}

constexpr orr_strategy_api kApi = {sizeof(orr_strategy_api), nullptr, describe, transform, predict, nullptr,
                                   nullptr};

orr_status* entry(const orr_bootstrap* boot, orr_exports* out) {
  orr::attach(boot);
  out->get = [](void*, const char* id, uint32_t version) -> const void* {
    return std::string_view(id) == "strategy" && version == 1 ? &kApi : nullptr;
  };
  return nullptr;
}

}  // namespace

ORR_PLUGIN(ORR_KIND_STRATEGY, "accumulate", "0.1.0", "gradient accumulation: microbatches one after another",
           entry, 1, {{"strategy", 1, 1}})
