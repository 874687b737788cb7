// SPDX-License-Identifier: Apache-2.0
//
// Rows: states that lie one after another are one storage. Where the result of a gathering of their
// new values can lie where the old ones are, the pieces are computed there, the others arrive
// beside them, and nothing is packed or copied.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "lower/launcher.h"

namespace orrery {

// What a plan counts a state's memory as.
const char* category_of(const State& state);

class RowPlaces {
 public:
  // Borrows all. last_read[v]: the last op that reads v or a view of it, kNone if none does.
  RowPlaces(RankPlan& plan, Launcher& launcher, const std::vector<int>& last_read);

  bool has(const State* s) const { return row_of_.count(s) > 0; }
  // REQUIRES: has(s).
  Place place(const State* s, Layout layout);
  // Where this rank's part of what a gathering makes lies, if all of it can lie in the row that its
  // "home" names, whose states have been placed.
  std::optional<Place> home(OpId gather) const;

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
