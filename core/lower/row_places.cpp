// SPDX-License-Identifier: Apache-2.0
#include "lower/row_places.h"

#include <algorithm>

namespace orrery {

RowPlaces::RowPlaces(RankPlan& plan, Launcher& launcher) : plan_(plan), launcher_(launcher) {
  const auto& rows = plan_.local.neighbours;
  for (size_t r = 0; r < rows.size(); ++r)
    for (auto& s : rows[r].states) row_of_[s.get()] = r;
  storages_.assign(rows.size(), kNone);
}

int RowPlaces::storage(size_t r) {
  if (storages_[r] != kNone) return storages_[r];
  const Neighbours& row = plan_.local.neighbours[r];
  const State& first = *row.states.front();
  storages_[r] =
      launcher_.new_storage(row.bytes, first.role == Role::param ? "parameter" : "state");
  Storage& s = plan_.storages.back();
  s.region = Region::state, s.state = row.states.front();
  if (row.shared) s.before = row.begin, s.behind = row.room - row.begin - row.bytes;
  return storages_[r];
}

Place RowPlaces::place(const State* s, Layout layout) {
  const size_t r = row_of_.at(s);
  const Neighbours& row = plan_.local.neighbours[r];
  const auto same = [&](auto& other) { return other.get() == s; };
  const auto i = std::find_if(row.states.begin(), row.states.end(), same) - row.states.begin();
  return {storage(r), row.offsets[static_cast<size_t>(i)], std::move(layout)};
}

Place RowPlaces::open(const Op& gather, Exchange order, Layout whole, int last_read) {
  const std::string first = attr_text(gather.attrs, "shared", "");
  const auto& rows = plan_.local.neighbours;
  const auto row = std::find_if(rows.begin(), rows.end(), [&](const Neighbours& n) {
    return n.states.front()->name == first;
  });
  const Place all{storage(static_cast<size_t>(row - rows.begin())), -row->begin, std::move(whole)};
  order.recv = all;
  launcher_.post(order);
  order.name += " read";
  open_.push_back({std::move(order), last_read});
  return all;
}

// Slices all read before the update.
void RowPlaces::close_read(int op_index) {
  const auto is_over = [&](const Open& row) { return row.last_read <= op_index; };
  for (const Open& row : open_) {
    if (!is_over(row)) continue;
    if (plan_.local.leaves.sliced) launcher_.at(Segment::update, 0);
    launcher_.post(row.order);
  }
  std::erase_if(open_, is_over);
}

bool RowPlaces::is_read(int storage, int op_index) const {
  return std::any_of(open_.begin(), open_.end(), [&](const Open& row) {
    return row.order.recv.storage == storage && row.last_read >= op_index;
  });
}

}  // namespace orrery
