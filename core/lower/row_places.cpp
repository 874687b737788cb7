// SPDX-License-Identifier: Apache-2.0
#include "lower/row_places.h"

#include <algorithm>

namespace orrery {

const char* category_of(const State& state) {
  if (state.role == Role::param) return "parameter";
  return state.copy_of ? "compute copy" : "state";
}

RowPlaces::RowPlaces(RankPlan& plan, Launcher& launcher) : plan_(plan), launcher_(launcher) {
  const auto& rows = plan_.local.neighbours;
  for (size_t r = 0; r < rows.size(); ++r)
    for (auto& s : rows[r].states) row_of_[s.get()] = r;
  storages_.assign(rows.size(), kNone);
}

int RowPlaces::storage(size_t r) {
  if (storages_[r] != kNone) return storages_[r];
  const Neighbours& row = plan_.local.neighbours[r];
  storages_[r] = launcher_.new_storage(row.bytes, category_of(*row.states.front()));
  Storage& s = plan_.storages.back();
  s.region = Region::state, s.state = row.states.front();
  return storages_[r];
}

Place RowPlaces::place(const State* s, Layout layout) {
  const size_t r = row_of_.at(s);
  const Neighbours& row = plan_.local.neighbours[r];
  const auto same = [&](auto& other) { return other.get() == s; };
  const auto i = std::find_if(row.states.begin(), row.states.end(), same) - row.states.begin();
  return {storage(r), row.offsets[static_cast<size_t>(i)], std::move(layout)};
}

}  // namespace orrery
