// SPDX-License-Identifier: Apache-2.0
//
// Activation recomputation: of every element of a list of modules ("blocks.3") backward computes
// again what is cheap, and keeps matrix products and attention. frugal.lua is the same strategy in
// Lua.
#include <orrery/sdk/path.hpp>
#include <orrery/sdk/strategy.hpp>

namespace {

orr_status* describe(void*, orr_strategy_info* out) {
  return orr::guard([&] {
    out->numeric_class = ORR_CLASS_EXACT;
    out->n_options = 0, out->options = nullptr;
    out->provides = "recomputation", out->requires_ = "", out->conflicts = "recomputation";
  });
}

// "blocks.3" of "GPT.blocks.3.mlp.1", "" of what lies in no list.
std::string element_of(std::string_view region) {
  std::string front;
  for (const std::string& part : orr::path::cut(orr::path::inside(region), '.')) {
    front += (front.empty() ? "" : ".") + part;
    if (long number; orr::path::whole_number(part, number)) return front;
  }
  return "";
}

struct Editing {
  orr_program* program;
  const orr_edit* edit;
};

orr_status* visit(void* arg, int32_t value, const orr_value_info* info) {
  const auto& [program, edit] = *static_cast<const Editing*>(arg);
  const std::string element = element_of(info->region);
  if (info->phase != ORR_PHASE_FORWARD || element.empty()) return nullptr;
  const std::string_view kind = info->kind;
  const bool costly = kind == "matmul" || kind == "attention";
  return edit->life(program, value, element.c_str(), costly ? ORR_LIFE_KEEP : ORR_LIFE_RECOMPUTE);
}

orr_status* transform(void*, orr_program* program, const orr_edit* edit, const orr_options*) {
  return orr::guard([&] {
    Editing editing{program, edit};
    orr::check(edit->each(program, 1u << ORR_ROLE_ACTIVATION, &editing, visit));
  });
}

constexpr orr_strategy_api table = orr::strategy_table(describe, transform, orr::predict_nothing);

}  // namespace

ORR_PLUGIN(ORR_KIND_STRATEGY, "frugal", "1.0.0", "Recomputes what is cheap",
           orr::strategy_entry<table>, 1, {{"strategy", 1, 1}})
