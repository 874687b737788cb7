// SPDX-License-Identifier: Apache-2.0
//
// A stack of strategies on a program that has its update already, and strategies of the tests' own,
// which are there where no plugin is.
#pragma once

#include <orrery/sdk/strategy.hpp>

#include "edit/edit.h"

namespace program_test {

inline orrery::Mesh applied(orrery::Program& p, const std::vector<orrery::StrategyUse>& stack,
                            int world) {
  orrery::StrategyStates states;
  orrery::Mesh mesh;
  orrery::Asked asked;
  orrery::apply_strategies(p, stack, world, states, mesh, asked);
  orrery::complete_step(p, mesh, asked, 1, true);
  return mesh;
}

inline orrery::StrategyUse own_strategy(const char* name, orr_strategy_api table,
                                        const std::string& line) {
  table.transform_forward = [](void*, orr_program*, const orr_edit*,
                               const orr_options*) -> orr_status* { return nullptr; };
  return {name, {}, line, nullptr, std::make_shared<orr_strategy_api>(table)};
}

// Leaves one after another.
inline orrery::StrategyUse one_by_one() {
  const auto describe = [](void*, orr_strategy_info* out) -> orr_status* {
    out->provides = out->requires_ = out->conflicts = "";
    return nullptr;
  };
  const auto transform = [](void*, orr_program* program, const orr_edit* edit, const orr_options*) {
    return edit->loop(program);
  };
  return own_strategy("one_by_one", orr::strategy_table(describe, transform, orr::predict_nothing),
                      "");
}

// All ranks share the batch; gradients are summed in buckets of so many bytes.
inline orrery::StrategyUse shared_batch(const std::string& line, int64_t bucket = 26214400) {
  static constexpr orr_option kOptions[] = {{"bucket", ORR_ATTR_INT, 0, "", "bytes"}};
  struct Editing {
    orr_program* program;
    const orr_edit* edit;
    int64_t bucket;
  };
  const auto describe = [](void*, orr_strategy_info* out) -> orr_status* {
    out->numeric_class = ORR_CLASS_EXACT, out->n_options = 1, out->options = kOptions;
    out->provides = "shares of the batch", out->requires_ = out->conflicts = "";
    return nullptr;
  };
  const auto transform = [](void*, orr_program* program, const orr_edit* edit,
                            const orr_options* o) {
    Editing e{program, edit, o->integer(o->self, "bucket", 0)};
    const auto place = [](void* arg, int32_t value, const orr_value_info*) {
      auto* e = static_cast<Editing*>(arg);
      return e->edit->place(e->program, value, "members", 0);
    };
    const auto reduce = [](void* arg, int32_t value, const orr_value_info*) {
      auto* e = static_cast<Editing*>(arg);
      return e->edit->reduce(e->program, value, "members", e->bucket);
    };
    orr_status* status = edit->axis(program, "members", 0);
    if (!status) status = edit->each(program, 1u << ORR_ROLE_BATCH, &e, place);
    return status ? status : edit->each(program, 1u << ORR_ROLE_GRAD, &e, reduce);
  };
  orrery::StrategyUse use = own_strategy(
      "shared_batch", orr::strategy_table(describe, transform, orr::predict_nothing), line);
  use.options["bucket"] = bucket;
  return use;
}

}  // namespace program_test
