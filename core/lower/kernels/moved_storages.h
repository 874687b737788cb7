// SPDX-License-Identifier: Apache-2.0
//
// Storages that become parts of others. Places go on naming the old one until all moves are known
// and carried out at once, because a plan has very many places.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "lower/rank_plan.h"

namespace orrery {

class MovedStorages {
 public:
  // REQUIRES: the plan outlives this.
  explicit MovedStorages(RankPlan& plan) : plan_(plan) {}

  // Moves everything in the storage of a place to `offset` in storage `to`.
  void move(const Place& at, int to, uint64_t offset) {
    const int from = moved(at).storage;
    if (moves_.size() < plan_.storages.size()) moves_.resize(plan_.storages.size(), {kNone, 0});
    moves_[static_cast<size_t>(from)] = {to, offset};
    plan_.storage(from).bytes = 0;
  }

  // Where a place, or what a storage holds, is after the moves so far.
  Place moved(Place at) const {
    while (was_moved(at.storage)) {
      const auto& [to, offset] = moves_[static_cast<size_t>(at.storage)];
      at.storage = to, at.offset += offset;
    }
    return at;
  }
  int moved(int storage) const {
    while (was_moved(storage)) storage = moves_[static_cast<size_t>(storage)].first;
    return storage;
  }

  // Lets every place of the plan name where it is.
  void carry_out() {
    if (moves_.empty()) return;
    for (Place& at : plan_.places) at = moved(std::move(at));
    for (Launch& l : plan_.launches) {
      for (Place& at : l.in_at) at = moved(std::move(at));
      for (Place& at : l.out_at) at = moved(std::move(at));
    }
    for (Exchange& e : plan_.exchanges)
      e.send = moved(std::move(e.send)), e.recv = moved(std::move(e.recv));
  }

 private:
  bool was_moved(int storage) const {
    return storage != kNone && static_cast<size_t>(storage) < moves_.size() &&
           moves_[static_cast<size_t>(storage)].first != kNone;
  }

  RankPlan& plan_;
  std::vector<std::pair<int, uint64_t>> moves_;  // by storage: where it was moved; kNone: nowhere
};

}  // namespace orrery
