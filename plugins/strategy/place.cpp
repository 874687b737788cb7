// SPDX-License-Identifier: Apache-2.0
//
// Modules placed on ranks by hand: whole layers on one rank after another, or the halves of a layer on
// two ranks that meet where the model says (Krizhevsky et al., NIPS 2012). EXACT. Microbatches go one
// at a time; strategy.pipeline keeps several on their way.
#include <algorithm>
#include <string>
#include <vector>

#include <orrery/sdk/path.hpp>
#include <orrery/sdk/strategy.hpp>

namespace {

constexpr orr_option kOptions[] = {
    {"modules", ORR_ATTR_TEXT, 1, nullptr, "modules of each part, in the order of their use: \"left.1;right.1;join\""},
    {"ranks", ORR_ATTR_TEXT, 0, "", "the rank of each part: \"0,1,0\"; left out, part after part"},
};

struct Parts {
  std::vector<std::string> modules;
  std::vector<int32_t> where;
  int32_t ranks() const { return 1 + *std::max_element(where.begin(), where.end()); }
};

Parts parts_of(const orr_options* o) {
  Parts parts;
  parts.modules = orr::path::cut(o->text(o->self, "modules", ""), ';');
  if (parts.modules.empty()) throw orr::Error(ORR_INVALID, "modules is missing: the modules of each part");
  std::vector<std::string> ranks = orr::path::cut(o->text(o->self, "ranks", ""), ',');
  for (size_t i = 0; i < parts.modules.size(); ++i) {
    long rank = static_cast<long>(i);
    if (!ranks.empty() && (ranks.size() != parts.modules.size() || !orr::path::whole_number(ranks[i], rank) || rank < 0))
      throw orr::Error(ORR_INVALID, "ranks has " + std::to_string(ranks.size()) + " entries for " +
                                        std::to_string(parts.modules.size()) + " parts; give each part a rank from 0");
    parts.where.push_back(static_cast<int32_t>(rank));
  }
  for (int32_t r = 0; r < parts.ranks(); ++r)
    if (std::find(parts.where.begin(), parts.where.end(), r) == parts.where.end())
      throw orr::Error(ORR_INVALID, "rank " + std::to_string(r) + " gets no part; number ranks without holes");
  return parts;
}

orr_status* describe(void*, orr_strategy_info* out) {
  return orr::guard([&] {
    out->numeric_class = ORR_CLASS_EXACT;
    out->n_options = 2, out->options = kOptions;
    out->provides = "an order of microbatches,stages", out->requires_ = "";
    out->conflicts = "an order of microbatches,stages";
  });
}

orr_status* transform(void*, orr_program* program, const orr_edit* edit, const orr_options* options) {
  return orr::guard([&] {
    Parts parts = parts_of(options);
    orr::check(edit->axis(program, "place", parts.ranks()));
    std::vector<const char*> modules;
    for (const std::string& m : parts.modules) modules.push_back(m.c_str());
    orr::check(edit->stage(program, "place", static_cast<int32_t>(modules.size()), parts.where.data(), modules.data()));
  });
}

orr_status* schedule(void*, const orr_options* options, int32_t coordinate, int32_t, int32_t leaves, orr_cell* out,
                     int32_t capacity, int32_t* n) {
  return orr::guard([&] {
    Parts parts = parts_of(options);
    std::vector<orr_cell> cells;
    int32_t count = static_cast<int32_t>(parts.where.size());
    for (int32_t leaf = 0; leaf < leaves; ++leaf) {
      for (int32_t c = 0; c < count; ++c)
        if (parts.where[static_cast<size_t>(c)] == coordinate) cells.push_back({ORR_CELL_FORWARD, c, leaf});
      for (int32_t c = count; c-- > 0;)
        if (parts.where[static_cast<size_t>(c)] == coordinate) cells.push_back({ORR_CELL_BACKWARD, c, leaf});
    }
    *n = static_cast<int32_t>(cells.size());
    std::copy_n(cells.begin(), std::min(*n, capacity), out);
  });
}

constexpr orr_strategy_api kApi = [] {
  orr_strategy_api table = orr::strategy_table(describe, transform, orr::predict_messages);
  table.schedule = schedule;
  return table;
}();

}  // namespace

ORR_PLUGIN(ORR_KIND_STRATEGY, "place", "0.1.0", "modules on ranks by hand, one microbatch at a time",
           orr::strategy_entry<kApi>, 1, {{"strategy", 1, 1}})
