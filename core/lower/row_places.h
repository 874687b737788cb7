// SPDX-License-Identifier: Apache-2.0
//
// Rows: states that lie one after another are one storage.
#pragma once

#include <map>
#include <vector>

#include "lower/launcher.h"

namespace orrery {

// What a plan counts a state's memory as.
const char* category_of(const State& state);

class RowPlaces {
 public:
  // Borrows both.
  RowPlaces(RankPlan& plan, Launcher& launcher);

  bool has(const State* s) const { return row_of_.count(s) > 0; }
  // Whether the program has named any state of the row yet.
  bool is_used(size_t row) const { return storages_[row] != kNone; }
  int storage(size_t row);  // named by the row's first state
  // REQUIRES: has(s).
  Place place(const State* s, Layout layout);

 private:
  RankPlan& plan_;
  Launcher& launcher_;
  std::map<const State*, size_t> row_of_;
  std::vector<int> storages_;  // by row
};

}  // namespace orrery
