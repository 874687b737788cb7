// SPDX-License-Identifier: Apache-2.0
//
// Rows: states that lie one after another are one storage. In a row that the ranks of a host share
// each of them has its piece, and all read the whole between two orders (Exchange::is_order).
#pragma once

#include <map>
#include <vector>

#include "lower/launcher.h"

namespace orrery {

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

  // The order that opens a shared row, which op `last_read` is the last to read as a whole. Returns
  // where that lies.
  Place open(const Op& gather, Exchange order, Layout whole, int last_read);
  // The orders that close rows, posted behind the op that reads them last: in the same order on
  // all ranks, whose programs differ only in what they do with their pieces.
  void close_read(int op_index);
  // Whether it is read by ops from this one on.
  bool is_read(int storage, int op_index) const;

 private:
  struct Open {
    Exchange order;
    int last_read;
  };
  RankPlan& plan_;
  Launcher& launcher_;
  std::map<const State*, size_t> row_of_;
  std::vector<int> storages_;  // by row
  std::vector<Open> open_;
};

}  // namespace orrery
