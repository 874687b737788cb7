// SPDX-License-Identifier: Apache-2.0
//
// Activation recomputation: backward computes what it needs of a region's forward again instead of
// keeping it. EXACT. "full" keeps what enters a region (Chen et al., "Training Deep Nets with
// Sublinear Memory Cost", 2016); "selective" keeps matrix products and attention as well and
// repeats what is cheap (Korthikanti et al., "Reducing Activation Recomputation", MLSys 2023). Or,
// with offload, they wait in another memory tier.
#include <algorithm>
#include <set>

#include <orrery/sdk/path.hpp>
#include <orrery/sdk/strategy.hpp>

namespace {

constexpr orr_option kOptions[] = {
    {"mode", ORR_ATTR_TEXT, 0, "full", "full: all but its inputs; selective: what is cheap"},
    {"path", ORR_ATTR_TEXT, 0, "", "regions such as blocks.*; left out: elements of lists"},
    {"offload", ORR_ATTR_TEXT, 0, "none",
     "host or disk: nothing is repeated, activations wait there"},
};

orr_status* describe(void*, orr_strategy_info* out) {
  return orr::guard([&] {
    out->numeric_class = ORR_CLASS_EXACT;
    out->n_options = std::size(kOptions), out->options = kOptions;
    out->provides = "recomputation", out->requires_ = "", out->conflicts = "recomputation";
  });
}

struct Editing {
  orr_program* program;
  const orr_edit* edit;
  std::vector<std::string> patterns;
  bool selective = false;
  int32_t life = ORR_LIFE_RECOMPUTE;
  std::set<std::string> matched, seen;  // patterns that named something; modules
};

// The region of a path: up to the first number without patterns, else what a pattern describes.
std::string region_of(Editing& e, const std::string& path) {
  std::string front;
  for (const std::string& part : orr::path::cut(path, '.')) {
    front += (front.empty() ? "" : ".") + part;
    e.seen.insert(front);
    long number;
    if (e.patterns.empty() && orr::path::whole_number(part, number)) return front;
  }
  for (const std::string& pattern : e.patterns)
    if (std::string found = orr::path::front(pattern, path); !found.empty()) {
      e.matched.insert(pattern);
      return found;
    }
  return "";
}

bool costly(std::string_view kind) { return kind == "matmul" || kind == "attention"; }

orr_status* visit(void* arg, int32_t value, const orr_value_info* info) {
  auto* e = static_cast<Editing*>(arg);
  if (info->phase != ORR_PHASE_FORWARD) return nullptr;
  std::string region = region_of(*e, orr::path::inside(info->region));
  if (region.empty()) return nullptr;
  bool keep = e->selective && costly(info->kind);
  return e->edit->life(e->program, value, region.c_str(), keep ? ORR_LIFE_KEEP : e->life);
}

int32_t life_of(const std::string& offload) {
  if (offload == "none") return ORR_LIFE_RECOMPUTE;
  if (offload == "host") return ORR_LIFE_HOST;
  if (offload == "disk") return ORR_LIFE_DISK;
  throw orr::Error(ORR_INVALID, "there is no offload '" + offload + "': none, host or disk");
}

std::string names_of(const std::set<std::string>& modules) {
  std::string text;
  for (const std::string& name : modules)
    if (std::count(name.begin(), name.end(), '.') < 2) text += (text.empty() ? "" : ", ") + name;
  return text.empty() ? "none" : text;
}

orr_status* transform(void*, orr_program* program, const orr_edit* edit,
                      const orr_options* options) {
  return orr::guard([&] {
    std::string mode = options->text(options->self, "mode", "full");
    if (mode != "full" && mode != "selective")
      throw orr::Error(ORR_INVALID, "mode '" + mode + "': there are full and selective");
    Editing e{program,
              edit,
              orr::path::cut(options->text(options->self, "path", ""), ','),
              mode == "selective",
              life_of(options->text(options->self, "offload", "none")),
              {},
              {}};
    if (e.selective && e.life != ORR_LIFE_RECOMPUTE)
      throw orr::Error(
          ORR_INVALID,
          "mode 'selective' repeats what is cheap, offload repeats nothing: leave one out");
    orr::check(edit->each(program, 1u << ORR_ROLE_ACTIVATION, &e, visit));
    for (const std::string& pattern : e.patterns)
      if (!e.matched.count(pattern))
        throw orr::Error(ORR_INVALID, "path '" + pattern +
                                          "' matches no module; there are: " + names_of(e.seen));
  });
}

// Nothing travels.
constexpr orr_strategy_api kApi = orr::strategy_table(describe, transform, orr::predict_nothing);

}  // namespace

ORR_PLUGIN(ORR_KIND_STRATEGY, "recompute", "0.1.0", "activations computed again in backward",
           orr::strategy_entry<kApi>, 1, {{"strategy", 1, 1}})
