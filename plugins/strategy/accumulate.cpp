// SPDX-License-Identifier: Apache-2.0
//
// Gradient accumulation: a rank computes its microbatches one after another, forward and backward,
// and adds their gradients, so that the activations of one are alive at a time. EXACT: gradients are
// added in the canonical tree (design section 8), at the price of one accumulator for every level of
// it that waits.
#include <orrery/sdk/strategy.hpp>

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

constexpr orr_strategy_api kApi = orr::strategy_table(describe, transform, orr::predict_nothing);

}  // namespace

ORR_PLUGIN(ORR_KIND_STRATEGY, "accumulate", "0.1.0", "gradient accumulation: microbatches one after another",
           orr::strategy_entry<kApi>, 1, {{"strategy", 1, 1}})
