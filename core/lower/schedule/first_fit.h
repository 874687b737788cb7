// SPDX-License-Identifier: Apache-2.0
//
// Places storages one after another, each at the lowest offset that is free during its whole life.
#pragma once

#include <climits>
#include <utility>
#include <vector>

#include "lower/rank_plan.h"

namespace orrery {

class FirstFit {
 public:
  explicit FirstFit(uint64_t alignment) : alignment_(alignment) {}

  // Sets the storage's offset. REQUIRES: the storage outlives this object.
  void place(Storage& storage);
  uint64_t bytes() const { return bytes_; }  // that all take

 private:
  using Span = std::pair<int, int>;  // steps [first, second]; first > second: no step
  struct Placed {
    uint64_t offset, end;
    Span span;  // from the first step to the last in which it is alive
    bool once;  // it is alive in all steps of the span: two such ones meet if their spans do
    const Storage* storage;
  };
  // Some dozens of storages that follow one another by offset. Often it is clear from the group
  // alone that a storage fits in none of their holes, or meets none of them.
  struct Group {
    std::vector<Placed> placed;
    uint64_t end = 0;               // of the one that ends last
    uint64_t hole = 0;              // the largest between them
    Span span{INT_MAX, -1};         // in which one of them may be alive
    Span common{INT_MIN, INT_MAX};  // in which all are alive
  };
  static bool meet(Span a, Span b) { return a.first <= b.second && b.first <= a.second; }
  static Group group_of(std::vector<Placed> placed);
  bool climb(const Group& group, const Placed& mine, uint64_t bytes, uint64_t& offset) const;
  void insert(const Placed& mine);

  uint64_t alignment_, bytes_ = 0;
  std::vector<Group> groups_;  // by offset
};

}  // namespace orrery
