// SPDX-License-Identifier: Apache-2.0
//
// Places states that lie one after another (FlatBuffer) in one storage, a row. Where the new values
// of a row are gathered from all ranks and may lie over the old ones, each rank computes its pieces
// in the row, the other ranks' pieces arrive beside them, and nothing is packed or copied.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "lower/kernels/launcher.h"

namespace orrery {

// The category of a state's storage.
const char* category_of(const State& state);

class RowPlaces {
 public:
  // Borrows its arguments. last_read[v]: the last op that reads v or a view of it, kNone if none
  // does.
  RowPlaces(RankPlan& plan, Launcher& launcher, const std::vector<int>& last_read);

  bool has(const State* s) const { return row_of_.count(s) > 0; }
  // REQUIRES: has(s).
  Place place(const State* s, Strided layout);
  // The place of this rank's pieces for the op `gather`, if its result can lie in the row that it
  // names (CommOp::row). REQUIRES: the row's states have been placed.
  std::optional<Place> place_in_row(OpId gather) const;

 private:
  const FlatBuffer& row(size_t r) const { return plan_.local.flat_buffers[r]; }
  bool may_write(OpId op, size_t r, uint64_t begin, uint64_t end) const;

  RankPlan& plan_;
  Launcher& launcher_;
  const std::vector<int>& last_read_;
  std::map<const State*, size_t> row_of_;
  std::map<const State*, ValueId> old_;
  std::vector<int> storages_;  // by row
};

}  // namespace orrery
